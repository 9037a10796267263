#!/usr/bin/env python3
"""Follows the objects of a type in crdcached, or prints those that match a query."""

import argparse
import json
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request


class Client:
    """Reads from crdcached with a bearer token. The token's user needs the same rights as at the API server."""

    def __init__(self, server, token, ca_file):
        self.server = server
        self.headers = {"Authorization": f"Bearer {token}"}
        self.tls = ssl.create_default_context(cafile=ca_file)

    def open(self, path, **parameters):
        url = f"{self.server}{path}?{urllib.parse.urlencode(parameters)}"
        request = urllib.request.Request(url, headers=self.headers)
        return urllib.request.urlopen(request, context=self.tls)

    def get(self, path, **parameters):
        with self.open(path, **parameters) as response:
            return json.load(response)

    def query(self, path, query):
        """Returns the objects that match a query of the indexes, such as "tier=critical"."""
        return self.get(f"/query{path}", q=query)["items"]

    def follow(self, path):
        """Yields (event type, object): first all objects as ADDED, then the changes.

        A watch ends after 5 to 10 minutes, and continues where it ended. If crdcached no longer has the
        changes since then, it answers with 410, and all objects are yielded again.
        """
        version = None
        while True:
            try:
                if version is None:
                    objects = self.get(path)
                    version = objects["metadata"]["resourceVersion"]
                    for item in objects["items"]:
                        yield "ADDED", item
                for event, item in self.watch(path, version):
                    version = item["metadata"]["resourceVersion"]
                    if event != "BOOKMARK":
                        yield event, item
            except urllib.error.HTTPError as error:
                if error.code != 410:
                    raise
                version = None

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
        metadata = item["metadata"]
        print(event, f'{metadata.get("namespace", "")}/{metadata["name"]}', flush=True)


if __name__ == "__main__":
    try:
        main()
    except urllib.error.HTTPError as error:
        sys.exit(f"{error}: {error.read().decode() if error.fp else ''}")
    except KeyboardInterrupt:
        pass
