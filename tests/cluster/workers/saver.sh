# saver.sh SECONDS FOLDER [CODE]
# On TERM it saves, which takes so long and leaves the file FOLDER/saved.RANK. With CODE, rank 1 ends with it once there
# is a file FOLDER/fail.
save() {
  sleep "$1"
  : >"$2/saved.$HOROVOD_RANK"
  exit 0
}
trap 'save "$1" "$2"' TERM
echo "ready ${HOROVOD_RANK}"
while :; do
  if [ -n "$3" ] && [ "$HOROVOD_RANK" = 1 ] && [ -e "$2/fail" ]; then exit "$3"; fi
  sleep 0.1
done
