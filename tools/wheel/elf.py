"""Reads what the bundle needs to know of a shared library: its name, what it needs, and its dynamic symbols.

Only 64-bit little-endian ELF, which is what farandole is built for.
"""

import struct

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SONAME, _DT_RUNPATH = 1, 5, 6, 10, 14, 29
_SHT_DYNSYM = 11


class ElfError(Exception):
    """The file is not a library that we can read; the text says why."""


class SharedLibrary:
    """`soname` (None: has none), `needed`, `runpath` and the names of the dynamic symbols it defines or asks for."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._data = file.read()
        if self._data[:6] != b"\x7fELF\x02\x01":
            raise ElfError("%s is not a 64-bit little-endian ELF file" % path)
        try:
            self._read()
        except (struct.error, IndexError, KeyError, ValueError) as error:
            raise ElfError("%s is damaged or not a shared library (%s)" % (path, error)) from error

    def _read(self):
        data = self._data
        phoff, shoff = struct.unpack_from("<QQ", data, 0x20)
        phentsize, phnum, shentsize, shnum = struct.unpack_from("<HHHH", data, 0x36)
        segments = [struct.unpack_from("<IIQQQQ", data, phoff + i * phentsize) for i in range(phnum)]
        loads = [(vaddr, offset, filesz) for kind, _, offset, vaddr, _, filesz in segments if kind == _PT_LOAD]

        def at(address):
            for vaddr, offset, filesz in loads:
                if vaddr <= address < vaddr + filesz:
                    return address - vaddr + offset
            raise ValueError("no segment holds address %#x" % address)

        entries = []
        for kind, _, offset, _, _, filesz in segments:
            if kind == _PT_DYNAMIC:
                entries = list(struct.iter_unpack("<qQ", data[offset:offset + filesz]))
        table = dict(entries)
        strings = at(table[_DT_STRTAB])

        def text(index):
            return data[strings + index:data.index(b"\0", strings + index)].decode()

        self.soname = text(table[_DT_SONAME]) if _DT_SONAME in table else None
        self.runpath = text(table[_DT_RUNPATH]) if _DT_RUNPATH in table else None
        self.needed = [text(value) for tag, value in entries if tag == _DT_NEEDED]
        # The table of dynamic symbols does not say its length; its section does.
        sections = [struct.unpack_from("<IIQQQQ", data, shoff + i * shentsize) for i in range(shnum)]
        symbols = [(offset, size) for _, kind, _, _, offset, size in sections if kind == _SHT_DYNSYM]
        if len(symbols) != 1:
            raise ValueError("%d tables of dynamic symbols" % len(symbols))
        offset, size = symbols[0]
        self.defined, self.undefined = set(), set()
        for name, info, _, section, _, _ in struct.iter_unpack("<IBBHQQ", data[offset:offset + size]):
            if name != 0 and info >> 4 != 0:  # STB_LOCAL is 0
                (self.defined if section != 0 else self.undefined).add(text(name))
