#!/usr/bin/env python3
"""Follows the objects of a type in crdcached, or prints those that match a query."""

import argparse
import http.client
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT = 150  # seconds without data; a watch receives a bookmark each minute


def name_of(item):
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


class Client:
    """Reads from crdcached with a bearer token. The token's user needs the same rights as at the API server."""

    def __init__(self, server, token, ca_file):
        self.server = server
        self.headers = {"Authorization": f"Bearer {token}"}
        self.tls = ssl.create_default_context(cafile=ca_file)

    def open(self, path, **parameters):
        url = f"{self.server}{path}?{urllib.parse.urlencode(parameters)}"
        request = urllib.request.Request(url, headers=self.headers)
        return urllib.request.urlopen(request, context=self.tls, timeout=TIMEOUT)

    def get(self, path, **parameters):
        with self.open(path, **parameters) as response:
            return json.load(response)

    def query(self, path, query):
        """Returns the objects that match a query of the indexes, such as "tier=critical"."""
        return self.get(f"/query{path}", q=query)["items"]

    def follow(self, path):
        """Yields (event type, object): first all objects as ADDED, then the changes.

        A watch ends after 5 to 10 minutes or with its connection, and continues where it ended. If crdcached no
        longer has the changes since then, it answers with 410. All objects are listed again then: DELETED for
        those that are gone, and ADDED for the others.
        """
        known, version = None, None
        while True:
            try:
                if version is None:
                    objects = self.get(path)
                    found = {name_of(item): item for item in objects["items"]}
                    gone = [item for name, item in (known or {}).items() if name not in found]
                    known, version = found, objects["metadata"]["resourceVersion"]
                    for item in gone:
                        yield "DELETED", item
                    for item in list(found.values()):
                        yield "ADDED", item
                for event, item in self.watch(path, version):
                    version = item["metadata"]["resourceVersion"]
                    if event == "BOOKMARK":
                        continue
                    if event == "DELETED":
                        known.pop(name_of(item), None)
                    else:
                        known[name_of(item)] = item
                    yield event, item
            except urllib.error.HTTPError as error:
                if error.code == 410:
                    version = None
                elif known is None or error.code != 429 and error.code < 500:
                    raise
            except (OSError, http.client.HTTPException, ValueError) as error:  # no answer, or half of one
                if known is None:
                    raise
                print(f"reconnecting: {error}", file=sys.stderr)
            time.sleep(1)

    def watch(self, path, version):
        """Yields (event type, object) after a resource version, until the server ends the watch."""
        with self.open(path, watch="true", allowWatchBookmarks="true", resourceVersion=version) as response:
            for line in response:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise urllib.error.HTTPError(path, status["code"], status["message"], None, None)
                yield event["type"], event["object"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", help="such as /apis/demo.crdcache.dev/v1/workloads")
    parser.add_argument("--server", required=True, help="the URL of crdcached")
    parser.add_argument("--ca-file", help="the certificates that signed crdcached's")
    parser.add_argument("--query", help="print the matching objects and exit")
    arguments = parser.parse_args()
    client = Client(arguments.server, os.environ["TOKEN"], arguments.ca_file)
    if arguments.query:
        events = (("MATCH", item) for item in client.query(arguments.path, arguments.query))
    else:
        events = client.follow(arguments.path)
    for event, item in events:
        print(event, "/".join(name_of(item)), flush=True)


if __name__ == "__main__":
    try:
        main()
    except urllib.error.HTTPError as error:
        sys.exit(f"{error}: {error.read().decode() if error.fp else ''}")
    except KeyboardInterrupt:
        pass
