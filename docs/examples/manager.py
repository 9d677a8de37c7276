#!/usr/bin/env python3
"""Manages a service that has one primary, as an ordinary client of the control plane.

usage: manager.py SERVICE FILTER [LEASE_SECONDS]

One of the nodes that FILTER matches is the primary of SERVICE: the param `primary` of the profile SERVICE names it. Any number of
copies may run. The one that holds the lock SERVICE decides, the others wait for the lock. Every write states the fencing number of the
lock, in the param `fence`, so a copy that has lost the lock changes nothing.

BELLWETHER_SERVER, BELLWETHER_TOKEN, BELLWETHER_CA and BELLWETHER_NAMESPACE mean what they mean to the command line. The exit code is
0 after SIGTERM or SIGINT, 1 after a refusal that no retry mends, and 2 after wrong arguments.
"""
import http.client, json, os, random, secrets, signal, socket, ssl, sys, time
from urllib import error, parse, request

ENDINGS = (signal.SIGTERM, signal.SIGINT)
NO_ANSWER = (OSError, http.client.HTTPException, ValueError)

class Unavailable(Exception): "No answer, or one that says to retry. A change may have been made or not."
class Refused(Exception): "The server says no. The classes below are the codes that have a meaning here."
class NotNow(Refused): "It is not possible in the present state."
class Conflict(Refused): "The profile is not as the write expects, and nothing was changed."
class NotFound(Refused): "There is no such object."
class NotHeld(Exception): "The lock is held by another copy, or not by this one any more."

CODES = {"refused": NotNow, "conflict": Conflict, "not_found": NotFound}

class Manager:
    def __init__(self, service, nodes, lease):
        self.service, self.nodes, self.lease = service, nodes, lease
        self.servers = os.environ["BELLWETHER_SERVER"].split(",")
        self.tls = ssl.create_default_context(cafile=os.environ.get("BELLWETHER_CA"))
        # Two processes with one name would be one holder.
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.fence, self.renew_at, self.ends = None, 0.0, 0.0
        self.seen, self.said = None, None

    def say(self, line):
        if line != self.said:
            print(line, flush=True)
        self.said = line

    def call(self, method, path, body=None, timeout=10, **query):
        namespace = os.environ.get("BELLWETHER_NAMESPACE", "default")
        url = f"{self.servers[0]}/v1/namespaces/{namespace}/{path}?{parse.urlencode(query)}"
        headers = {"Authorization": f"Bearer {os.environ['BELLWETHER_TOKEN']}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            asked = request.Request(url, data, headers, method=method)
            with request.urlopen(asked, timeout=timeout, context=self.tls) as answer:
                return json.load(answer)
        except error.HTTPError as answer:
            raise self.refusal(answer)
        except NO_ANSWER as failure:
            raise Unavailable(str(failure) or repr(failure))

    def refusal(self, answer):
        try:
            problem = json.load(answer)
        except NO_ANSWER:  # It is not from the control plane, but from something on the way.
            problem = {}
        detail = problem.get("detail", str(answer))
        if answer.code in (401, 403):
            sys.exit(f"manager.py: {detail}: see BELLWETHER_TOKEN")
        if answer.code in (408, 429) or answer.code >= 500:
            return Unavailable(detail)
        return CODES.get(problem.get("code"), Refused)(detail)

    def step(self):
        """Does what is to be done now, then waits until something happens or the lock is to be renewed."""
        if self.seen is None:  # Before anything is read, so that the watch has all that happens after it.
            newest = self.call("GET", "events", limit=1)["items"]
            self.seen = newest[-1]["seq"] if newest else 0
        own = f"subject in (slot/{self.service}, profile/{self.service})"
        if self.fence is None and not self.acquire():
            return self.watch(own, 30)
        if time.monotonic() >= self.ends:
            raise NotHeld("it was not renewed in time")
        if time.monotonic() >= self.renew_at:
            self.lock("renew", fence=self.fence)
        self.decide()
        self.watch(f'{own} or kind =~ "^node[.]"', self.renew_at - time.monotonic())

    def lock(self, verb, **more):
        asked = time.monotonic()  # The server counts the lease from later on.
        body = {"holder": self.holder, "lease": f"{self.lease}s", **more}
        try:
            self.fence = self.call("POST", f"slots/{self.service}/{verb}", body)["fence"]
        except NotNow as why:
            raise NotHeld(str(why))
        self.renew_at, self.ends = asked + self.lease / 3, asked + self.lease

    def acquire(self):
        try:
            self.lock("acquire", capacity=1, reason=f"manages {self.service}")
        except NotHeld as other:
            return self.say(f"waiting for the lock: {other}")
        self.say(f"acquired the lock with number {self.fence}")
        return True

    def release(self):
        for ending in ENDINGS:
            signal.signal(ending, signal.SIG_IGN)
        if self.fence is not None:
            try:
                self.call("POST", f"slots/{self.service}/release", {"holder": self.holder, "fence": self.fence})
                self.say("released the lock")
            except (Unavailable, Refused) as failure:
                self.say(f"the lock ends with its lease, as it cannot be released: {failure}")

    def watch(self, what, seconds):
        """Waits for an event that matches. What it says does not matter: the next step reads everything again."""
        seconds = min(max(seconds, 0), 30)
        wait = {"after": self.seen, "wait": f"{int(seconds * 1000)}ms", "filter": what}
        self.seen = int(self.call("GET", "events", timeout=seconds + 10, **wait).get("next", self.seen))

    def first_node(self, test):
        nodes = self.call("GET", "nodes", filter=f"({self.nodes}) and {test}", limit=1)["items"]
        return nodes[0]["node"]["name"] if nodes else None

    def params(self):
        try:
            return self.call("GET", f"profiles/{self.service}")["params"]
        except NotFound:
            return {}

    def decide(self):
        params = self.params()
        fence, primary = params.get("fence", 0), params.get("primary")
        if fence > self.fence:
            self.lock("renew", fence=self.fence)  # Refused if another copy has the lock now.
            sys.exit(f"manager.py: profile {self.service} has number {fence}, and the lock only {self.fence}")
        stays = primary and self.first_node(f'name = "{primary}" and presence in (up, suspect)')
        chosen = primary if stays else self.first_node("presence = up and not cordoned")
        if chosen is None:
            return self.say(f"no node can be the primary in place of {primary}")
        if (fence, primary) == (self.fence, chosen):
            return
        new = {"fence": self.fence, "primary": chosen}
        old = {"if_equal": {key: params[key] for key in new if key in params}, "if_absent": [key for key in new if key not in params]}
        try:
            self.call("PATCH", f"profiles/{self.service}", {"set": new, **old})
            self.say(f"wrote with number {self.fence}: the primary is {chosen}, was {primary}")
        except Conflict as conflict:  # The event of the change that came first ends the watch at once.
            self.say(f"wrote nothing with number {self.fence}: {conflict}")

    def run(self):
        failures = 0
        while True:
            try:
                self.step()
                failures = 0
            except NotHeld as why:
                self.say(f"lost the lock with number {self.fence}: {why}")
                self.fence = None
            except Unavailable as why:
                self.say(f"no answer, retrying: {why}")
                self.servers.append(self.servers.pop(0))
                time.sleep(random.uniform(0.5, 1) * min(0.1 * 2 ** min(failures, 10), 2))
                failures += 1

def main(words):
    lease = (words[2:] or ["10"])[0]
    unset = [name for name in ("BELLWETHER_SERVER", "BELLWETHER_TOKEN") if not os.environ.get(name)]
    if len(words) not in (2, 3) or not lease.isdecimal() or unset:
        print(__doc__.split("\n\n")[1], *(f"{name} is not set" for name in unset), sep="\n", file=sys.stderr)
        return 2
    for ending in ENDINGS:
        signal.signal(ending, lambda *_: sys.exit(0))
    manager = Manager(words[0], words[1], int(lease))
    try:
        manager.run()
    except Refused as refused:
        sys.exit(f"manager.py: {refused}")
    finally:
        manager.release()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
