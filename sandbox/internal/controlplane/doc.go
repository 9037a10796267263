// Package controlplane runs a real etcd and a real kube-apiserver on loopback. controller-runtime's envtest
// knows their flags and starts them; this package adds a folder with data, logs and a lock, ports that stay
// reserved, restarts, and an end for both when the supervisor dies.
//
// # Usage
//
// A supervisor process calls [Start] and keeps the [ControlPlane] until [ControlPlane.Stop].
// Other processes reach a running supervisor through [Dial], given only the directory.
//
// # Lifetime
//
// Everything about one sandbox lives in one directory, guarded by a file lock
// that the supervisor holds. If the supervisor dies in any way, its watchdog ends both components,
// and then the lock is free again. The directory's data stays, and the
// next Start continues from it, unless the sandbox was started as ephemeral.
//
// # Concurrency
//
// All methods of ControlPlane and Client may be called concurrently.
package controlplane
