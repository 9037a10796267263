// Prints the objects of a custom resource that match a query of crdcached, or all objects and their changes.
// Usage: node client.js GROUP VERSION NAMESPACE RESOURCE [QUERY]
import https from 'node:https';
import {text} from 'node:stream/consumers';
import * as k8s from '@kubernetes/client-node';

const [group, version, namespace, plural, query] = process.argv.slice(2);
const path = `/apis/${group}/${version}/namespaces/${namespace}/${plural}`;
const config = new k8s.KubeConfig();
config.loadFromDefault();

const print = (event, {metadata}) => console.log(event, `${metadata.namespace}/${metadata.name}`);

// matches returns the objects that match a query of the indexes, such as "tier=critical".
async function matches() {
  const url = `${config.getCurrentCluster().server}/query${path}?q=${encodeURIComponent(query)}`;
  const options = {};
  await config.applyToHTTPSOptions(options);
  const response = await new Promise((resolve, reject) => https.get(url, options, resolve).on('error', reject));
  const body = await text(response);
  if (response.statusCode !== 200) throw new Error(body);
  return JSON.parse(body).items;
}

// follow prints all objects as ADDED, and then the changes. The informer lists again after each failure.
async function follow() {
  const api = config.makeApiClient(k8s.CustomObjectsApi);
  const informer = k8s.makeInformer(config, path,
    () => api.listNamespacedCustomObject({group, version, namespace, plural}));
  informer.on('add', (item) => print('ADDED', item));
  informer.on('update', (item) => print('MODIFIED', item));
  informer.on('delete', (item) => print('DELETED', item));
  informer.on('error', (error) => {
    console.error(error.message ?? error);
    setTimeout(() => informer.start(), 1000);
  });
  await informer.start();
}

if (query) (await matches()).forEach((item) => print('MATCH', item));
else await follow();
