// Package controlplane runs a real etcd and a real kube-apiserver on loopback,
// each as a child process of the program's own binary.
//
// # Usage
//
// A supervisor process calls [Start] and keeps the [ControlPlane] until [ControlPlane.Stop].
// The binary must become a component when [ParseChild] says that it was started
// as one. Other processes reach a running
// supervisor through [Dial], given only the directory.
//
// # Lifetime
//
// Everything about one sandbox lives in one directory, guarded by a file lock
// that the supervisor holds. If the supervisor dies in any way, both components
// die with it and the lock is free again. The directory's data stays, and the
// next Start continues from it, unless the sandbox was started as ephemeral.
//
// # Concurrency
//
// All methods of ControlPlane and Client may be called concurrently.
package controlplane
