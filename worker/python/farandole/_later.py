"""What the interface has and this version does not do yet: there under its name, and an error when it is used."""


def error(what):
    """The exception to raise."""
    return NotImplementedError("%s is not in this version of farandole; it comes with a later one" % what)


def function(name):
    """A function that raises error(name)."""

    def later(*args, **kwargs):
        raise error(name)

    later.__name__ = later.__qualname__ = name
    later.__doc__ = "Not in this version: raises NotImplementedError."
    return later


def type_(name):
    """A class whose construction raises error(name)."""

    def construct(self, *args, **kwargs):
        raise error(name)

    return type(name, (), {"__init__": construct, "__doc__": "Not in this version: raises NotImplementedError."})
