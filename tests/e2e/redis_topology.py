"""Redis as users run it, from Debian's packages, on free ports of 127.0.0.1: one server, a group under Sentinel, a Cluster.
Everything is in a temporary directory, waited for with a deadline, and ended by its process's number."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import redis

from harness import DEADLINE, Client, Refused, wait_for

SKIPPED = 77
SHARDS = {"one": 1, "sentinel": 1, "cluster": 16}  # as delayq cuts its jobs, unless it is told otherwise


def program():
    found = shutil.which("redis-server")
    if found is None:
        print("redis-server is missing; tools/setup installs it", file=sys.stderr)
        sys.exit(SKIPPED)
    return found


def free_ports(count, also=0):
    """Ports that are free now, and those `also` above them, as a Cluster's members need them."""
    found, held = [], []
    try:
        while len(found) < count:
            first = socket.socket()
            held.append(first)
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            if also:
                if port + also > 65_535:
                    continue
                second = socket.socket()
                held.append(second)
                try:
                    second.bind(("127.0.0.1", port + also))
                except OSError:
                    continue
            found.append(port)
    finally:
        for each in held:
            each.close()
    return found


class Redis:
    """One redis-server process."""

    def __init__(self, directory, port, *options, sentinel=False):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = port
        self.options = options
        self.sentinel = sentinel
        self.process = None
        self.is_paused = False
        self.start()

    def start(self):
        """Starts it, with what it has on its disk, and waits until it answers."""
        if self.process is not None and self.process.poll() is None:
            return
        file = self.directory / ("sentinel.conf" if self.sentinel else "redis.conf")
        if self.process is None:
            self.configure(file)
        command = [program(), str(file), *(["--sentinel"] if self.sentinel else [])]
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.is_paused = False
        wait_for(self.is_up, f"the Redis at {self.port} answers")

    def configure(self, file):
        """In a file, as users have it: a Sentinel writes into it who is a replica of whom, and so it is after a restart."""
        options = [] if self.sentinel else ["--save", '""', "--appendonly", "yes", "--appendfsync", "everysec"]
        options += ["--port", self.port, "--bind", "127.0.0.1", "--dir", self.directory, "--daemonize", "no",
                    "--logfile", self.directory / "log", *self.options]
        with file.open("a", encoding="utf-8") as text:
            for name, value in zip(options[::2], options[1::2]):
                text.write(f"{name.removeprefix('--')} {value}\n")

    def is_up(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the Redis at {self.port} ended: {(self.directory / 'log').read_text()[-2000:]}")
        try:
            return self.ask("PING") in ("PONG", b"PONG")
        except Refused as refused:
            return refused.code not in ("LOADING", "MASTERDOWN", "BUSY") and refused.code == "NOAUTH"
        except (OSError, ConnectionError):
            return False

    def ask(self, *words):
        client = Client(self.port)
        try:
            return client.ask(*words)
        finally:
            client.close()

    def url(self, database=0):
        return f"redis://127.0.0.1:{self.port}/{database}"

    def client(self, database=0):
        """A client from Debian's python3-redis, for what is more than a command or two."""
        return redis.Redis(port=self.port, db=database, socket_timeout=DEADLINE)

    def info(self, section="all"):
        text = self.ask("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def calls(self):
        """How often each command was called."""
        return {name.removeprefix("cmdstat_"): int(dict(part.split("=") for part in figures.split(","))["calls"])
                for name, figures in self.info("commandstats").items() if name.startswith("cmdstat_")}

    def kill(self):
        """As when its machine dies."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE)

    def pause(self):
        """It holds its connections and says nothing."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)
            self.is_paused = True

    def resume(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def cut_connections(self):
        """Those of its clients, and of its replicas not."""
        return self.ask("CLIENT", "KILL", "TYPE", "normal") + self.ask("CLIENT", "KILL", "TYPE", "pubsub")

    def close(self):
        if self.process is None:
            return
        self.resume()
        self.kill()


def has_replicas(master, count):
    """Whether so many follow it; one that is still being sent the whole of it does not yet. A master that asks for replicas
    before it writes (min-replicas-to-write) counts them once a second."""
    facts = master.info("replication")
    online = sum(1 for name, fact in facts.items() if name.startswith("slave") and "state=online" in fact)
    return online == count and int(facts.get("min_slaves_good_slaves", count)) == count


class Topology:
    """What the three have in common."""

    def __init__(self, directory=None):
        """In a directory of the caller's, who removes it, or in one of its own."""
        self.is_own = directory is None
        self.directory = directory or pathlib.Path(
            tempfile.mkdtemp(prefix="delayq-redis-", dir=os.environ.get("DELAYQ_E2E_DIR")))
        self.members = []  # those with jobs
        self.others = []   # Sentinels
        self.url = None

    def masters(self):
        return self.members

    def is_settled(self):
        return True

    def lives(self):
        """By the ports of the masters, the name that each gives to its history: another after a promotion and after a
        restart. None while they have not found together."""
        if not self.is_settled():
            return None
        return {master.port: master.info("replication")["master_replid"] for master in self.masters()}

    def close(self):
        for each in self.others + self.members:
            each.close()
        if self.is_own:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class One(Topology):
    def __init__(self, *options, directory=None):
        super().__init__(directory)
        try:
            self.redis = Redis(self.directory / "redis", free_ports(1)[0], *options)
            self.members = [self.redis]
            self.url = f"redis://127.0.0.1:{self.redis.port}"
        except BaseException:
            self.close()
            raise


class Sentinels(Topology):
    """A master, two replicas, three Sentinels that wait a second before they choose another. A master without a replica
    that keeps up refuses to write, so that what it answered is with one of them: min-replicas-to-write."""
    NAME = "mymaster"

    def __init__(self, *options, directory=None):
        super().__init__(directory)
        try:
            master, *replicas = free_ports(3)
            safe = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "2", "--repl-diskless-sync-delay", "0",
                    "--repl-ping-replica-period", "1", *options)
            self.members = [Redis(self.directory / "redis0", master, *safe)]
            for number, port in enumerate(replicas, 1):
                self.members.append(
                    Redis(self.directory / f"redis{number}", port, *safe, "--replicaof", f"127.0.0.1 {master}"))
            sentinels = free_ports(3)
            for number, port in enumerate(sentinels):
                directory = self.directory / f"sentinel{number}"
                directory.mkdir(parents=True)
                (directory / "sentinel.conf").write_text(
                    f"sentinel monitor {self.NAME} 127.0.0.1 {master} 2\n"
                    f"sentinel down-after-milliseconds {self.NAME} 1000\n"
                    f"sentinel failover-timeout {self.NAME} 5000\n"
                    f"sentinel parallel-syncs {self.NAME} 2\n")
                self.others.append(Redis(directory, port, sentinel=True))
            self.url = "redis-sentinel://" + ",".join(f"127.0.0.1:{port}" for port in sentinels) + f"/{self.NAME}"
            wait_for(self.is_settled, "the replicas follow, and the Sentinels know each other")
        except BaseException:
            self.close()
            raise

    def is_settled(self):
        try:
            master = self.master()
            if master is None or not has_replicas(master, 2):
                return False
            for sentinel in self.others:
                known = sentinel.ask("SENTINEL", "MASTER", self.NAME)
                facts = {known[i]: known[i + 1] for i in range(0, len(known), 2)}
                if (facts[b"num-slaves"], facts[b"num-other-sentinels"], facts[b"flags"]) != (b"2", b"2", b"master"):
                    return False
            return True
        except (OSError, ConnectionError, Refused):
            return False

    def master(self):
        """Whom the Sentinels say it is; none when it does not answer as one."""
        for sentinel in self.others:
            try:
                port = int(sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.NAME)[1])
                for member in self.members:
                    if member.port == port and member.process.poll() is None and not member.is_paused:
                        return member if member.ask("ROLE")[0] == b"master" else None
            except (OSError, ConnectionError, Refused, TypeError):
                continue
        return None

    def masters(self):
        master = self.master()
        return [] if master is None else [master]


class Cluster(Topology):
    """Three masters with a replica each, which takes over after a second. It has none itself then, so that none is asked
    for before a master writes."""

    def __init__(self, *options, directory=None):
        super().__init__(directory)
        try:
            ports = free_ports(6, also=10_000)
            for number, port in enumerate(ports):
                self.members.append(Redis(
                    self.directory / f"redis{number}", port, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
                    "--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0",
                    "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--cluster-allow-replica-migration", "no",
                    *options))
            made = subprocess.run(
                ["redis-cli", "--cluster", "create", *(f"127.0.0.1:{port}" for port in ports), "--cluster-replicas", "1",
                 "--cluster-yes"], capture_output=True, text=True, timeout=DEADLINE, check=False)
            if made.returncode != 0:
                raise AssertionError(made.stdout + made.stderr)
            self.url = "redis-cluster://" + ",".join(f"127.0.0.1:{port}" for port in ports)
            wait_for(self.is_settled, "the Cluster has all its slots and replicas")
        except BaseException:
            self.close()
            raise

    def is_settled(self):
        try:
            if any(member.info("cluster").get("cluster_enabled") != "1" for member in self.members):
                return False
            states = [dict(line.split(":", 1) for line in member.ask("CLUSTER", "INFO").decode().splitlines() if ":" in line)
                      for member in self.members]
            masters = self.masters()
            return (all(state["cluster_state"] == "ok" for state in states) and len(masters) == 3
                    and all(has_replicas(master, 1) for master in masters))
        except (OSError, ConnectionError, Refused):
            return False

    def masters(self):
        found = []
        for member in self.members:
            try:
                if member.process.poll() is None and not member.is_paused and member.ask("ROLE")[0] == b"master":
                    found.append(member)
            except (OSError, ConnectionError, Refused):
                continue
        return found


if __name__ == "__main__":  # a look at what it starts: prints the URL and waits for a line
    kind = {"one": One, "sentinel": Sentinels, "cluster": Cluster}[sys.argv[1]]
    with kind() as topology:
        print(topology.url, flush=True)
        sys.stdin.readline()
