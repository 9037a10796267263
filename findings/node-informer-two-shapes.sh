#!/usr/bin/env bash
# @kubernetes/client-node 1.4.0: one would expect that an informer holds objects of one shape. The first list comes from a typed call,
# so that its times are Date objects and the field from is named _from. Each object that the watch delivers is raw JSON. The rules of
# a NetworkPolicy are thus below _from until the policy changes and below from afterwards, and creationTimestamp.getTime() works until
# the first update. The label selector of makeInformer restricts the watch only: the list brings in objects that do not match.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
cat >main.mjs <<'END'
import { createServer } from 'node:http';
import { once } from 'node:events';
import { KubeConfig, NetworkingV1Api, makeInformer } from '@kubernetes/client-node';

const path = '/apis/networking.k8s.io/v1/namespaces/web/networkpolicies';
const policy = (name, team, resourceVersion) => ({
    apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy',
    metadata: { name, namespace: 'web', labels: { team }, resourceVersion, creationTimestamp: '2026-01-02T03:04:05Z' },
    spec: { podSelector: {}, ingress: [{ from: [{ podSelector: {} }] }] },
});
const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'application/json');
    const query = new URL(request.url, 'http://server').searchParams;
    if (query.has('watch')) {
        console.log('watch: selector', query.get('labelSelector'));
        response.write(JSON.stringify({ type: 'MODIFIED', object: policy('blue', 'blue', '6') }) + '\n');
        return;
    }
    console.log('list: selector', query.get('labelSelector'));
    response.end(JSON.stringify({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicyList',
        metadata: { resourceVersion: '5' }, items: [policy('blue', 'blue', '4'), policy('red', 'red', '3')] }));
}).listen(0, '127.0.0.1');
await once(server, 'listening');

const config = new KubeConfig();
const host = `http://127.0.0.1:${server.address().port}`;
config.loadFromClusterAndUser({ name: 'c', server: host, skipTLSVerify: true }, { name: 'u' });
const api = config.makeApiClient(NetworkingV1Api);
const informer = makeInformer(config, path, () => api.listNamespacedNetworkPolicy({ namespace: 'web' }), 'team=blue');
const show = (when, object) => console.log(`${when}: ${object.metadata.name}, time is a Date:`,
    object.metadata.creationTimestamp instanceof Date, 'rule:', Object.keys(object.spec.ingress[0]).join());
informer.on('add', (object) => show('add', object));
informer.on('update', (object) => {
    show('update', object);
    process.exit(0);
});
informer.on('error', (error) => {
    throw error;
});
await informer.start();
END
npm init -y >/dev/null 2>&1
npm install --no-audit --no-fund --silent @kubernetes/client-node@1.4.0 >/dev/null
node main.mjs | tee seen
diff - seen <<'END'
list: selector null
add: blue, time is a Date: true rule: _from
add: red, time is a Date: true rule: _from
watch: selector team=blue
update: blue, time is a Date: false rule: from
END
