"""Prints, as JSON in one line, what reached this worker: its arguments, environment, folder, user and host."""

import json
import os
import pwd
import socket
import sys

print(
    json.dumps(
        {
            "arguments": sys.argv[1:],
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "user": pwd.getpwuid(os.getuid()).pw_name,
            "host": socket.gethostname(),
        }
    ),
    flush=True,
)
