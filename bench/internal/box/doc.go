// Package box runs the API server that the benchmark talks to: the repository's sandbox, a real etcd and a real
// kube-apiserver, with cert-manager's definitions and as many Certificates as are asked for.
package box
