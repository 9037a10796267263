// Package loader applies manifests to an API server: custom resource
// definitions first, which are awaited until they are served, then namespaces,
// then everything else. It uses server-side apply, and applies the status too
// where the resource has a status subresource, so that the output of
// "kubectl get -o yaml" can be loaded as it is.
package loader
