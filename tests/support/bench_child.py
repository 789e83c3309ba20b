"""A measuring process that behaves as it is told."""

import json
import sys
import threading

do = json.loads(sys.stdin.readline())["do"]


def say(word: str) -> None:
    print(json.dumps({"word": word}), flush=True)


if do == "talk":
    say("one")
    say("two")
elif do == "crash":
    say("one")
    sys.exit("no luck today")
elif do == "babble":
    print("hello there", flush=True)
elif do == "echo":
    say("ready")
    for line in sys.stdin:
        say(json.loads(line)["do"])
elif do == "flood":
    sys.stderr.write("x" * 1_000_000)
    say("done")
else:
    if do == "hang after one":
        say("one")
    threading.Event().wait()
