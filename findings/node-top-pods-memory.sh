#!/usr/bin/env bash
# @kubernetes/client-node 1.4.0: one would expect that topPods reports the sum of the requests for memory of
# all containers, as it does for CPU and for the limits. It adds the request of each container to the sum of
# the limits before it. A pod whose containers request 100 and 10 MiB, with limits of 1000 and 20 MiB,
# counts as 1010 MiB; in the other order as 120 MiB. Without limits the request of the last container alone
# remains. Pods with one container are right.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
cat >main.mjs <<'END'
import { topPods } from '@kubernetes/client-node';

const container = (name, request, limit) => ({ name, resources: {
  requests: { cpu: '100m', memory: request + 'Mi' },
  limits: limit && { cpu: '200m', memory: limit + 'Mi' } } });
const app = container('app', 100, 1000), proxy = container('proxy', 10, 20);
const pods = { alone: [app], app_first: [app, proxy], proxy_first: [proxy, app],
  no_limits: [container('app', 100), container('proxy', 10)] };
const items = Object.entries(pods).map(([name, containers]) => (
  { metadata: { name }, spec: { containers } }));
const core = { listNamespacedPod: async () => ({ items }) };
const metrics = { getPodMetrics: async () => ({ items: [] }) };
for (const { Pod, CPU, Memory } of await topPods(core, metrics, 'web')) {
  const inMiB = [Memory.RequestTotal, Memory.LimitTotal].map((bytes) => BigInt(bytes) / BigInt(1024 * 1024));
  console.log(Pod.metadata.name, 'cpu', CPU.RequestTotal, CPU.LimitTotal, 'memory', ...inMiB.map(String));
}
END
npm install --no-audit --no-fund --silent @kubernetes/client-node@1.4.0 >/dev/null
node main.mjs | tee seen
diff - seen <<'END'
alone cpu 0.1 0.2 memory 100 1000
app_first cpu 0.2 0.4 memory 1010 1020
proxy_first cpu 0.2 0.4 memory 120 1020
no_limits cpu 0.2 0 memory 10 0
END
