// Package component holds the two servers themselves. It is apart from the
// package that supervises them because it links all of kube-apiserver and etcd.
package component
