// Package loader applies manifests to an API server: first custom resource definitions, until they are
// served, then namespaces, then all other objects. It uses server-side apply, and also applies the status if
// the type has a status subresource. So the output of "kubectl get -o yaml" can be loaded unchanged.
package loader
