#!/usr/bin/env python3
"""Prints the objects of a custom resource that match a query of crdcached, or all objects and their changes."""

import argparse

from kubernetes import client, config, watch


def query(api, resource, text):
    """Returns the objects that match a query of the indexes, such as "tier=critical"."""
    group, version, namespace, plural = resource
    path = f"/query/apis/{group}/{version}/namespaces/{namespace}/{plural}"
    answer = api.api_client.call_api(
        path, "GET", query_params=[("q", text)], header_params={"Accept": "application/json"},
        auth_settings=["BearerToken"], response_type="object", _return_http_data_only=True)
    return answer["items"]


def follow(api, resource):
    """Yields (event type, object): first all objects as ADDED, then the changes.

    If crdcached no longer has the changes since the last one, it answers with 410, and all objects are listed again.
    """
    while True:
        objects = api.list_namespaced_custom_object(*resource)
        for item in objects["items"]:
            yield "ADDED", item
        version = objects["metadata"]["resourceVersion"]
        try:
            for event in watch.Watch().stream(
                    api.list_namespaced_custom_object, *resource, resource_version=version):
                yield event["type"], event["object"]
        except client.exceptions.ApiException as error:
            if error.status != 410:
                raise


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("resource", nargs=4, metavar=("GROUP", "VERSION", "NAMESPACE", "RESOURCE"))
    parser.add_argument("--query", help="print the matching objects and exit")
    arguments = parser.parse_args()
    config.load_kube_config()
    api = client.CustomObjectsApi()
    if arguments.query:
        events = (("MATCH", item) for item in query(api, arguments.resource, arguments.query))
    else:
        events = follow(api, arguments.resource)
    for event, item in events:
        print(event, f"{item['metadata']['namespace']}/{item['metadata']['name']}", flush=True)


if __name__ == "__main__":
    main()
