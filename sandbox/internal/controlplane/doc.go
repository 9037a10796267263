// Package controlplane runs a real etcd and a real kube-apiserver on loopback. controller-runtime's envtest
// starts them with its flags. This package adds a folder with data, logs and a lock, reserved ports,
// restarts, and a watchdog that ends both when the supervisor dies.
//
// # Usage
//
// A supervisor process calls [Start] and keeps the [ControlPlane] until [ControlPlane.Stop].
// Other processes reach a running supervisor through [Dial] with its directory.
//
// # Lifetime
//
// All files of a sandbox are in one directory. The supervisor holds its lock. When the supervisor dies, the
// watchdog ends both components and then releases the lock. The data stays, and the next Start reuses it,
// unless the sandbox is ephemeral.
//
// # Concurrency
//
// All methods of ControlPlane and Client are safe for concurrent use.
package controlplane
