# Sleeps until it is ended, with a child and with a grandchild in a session of its own.
#
#   family.sh        all end on TERM, as programs do
#   family.sh deaf   none of them hears TERM, INT and HUP
#   family.sh told   deaf, but each TERM is told on standard output
if [ -n "$1" ]; then trap '' TERM INT HUP; fi
sleep 1000 &
setsid sh -c 'sleep 1000 & wait' &
if [ "$1" = told ]; then trap 'echo told' TERM; fi
echo "ready ${HOROVOD_RANK}"
while :; do wait; done
