package harness

import "context"

// controlPlane is a running etcd and kube-apiserver. Its methods are called one at a time; a restart
// returns when the API server is ready, with the same data at the same address.
type controlPlane interface {
	// kubeconfig is a file with the contexts AdminContext (the current one) and UnprivilegedContext.
	kubeconfig() string
	// killAPIServer ends the API server at once; it stays away until restartAPIServer.
	killAPIServer(ctx context.Context) error
	restartAPIServer(ctx context.Context) error
	// apiServerPID is the process of the API server, which runs.
	apiServerPID(ctx context.Context) (int, error)
	// killEtcd ends etcd at once; it stays away until restartEtcd.
	killEtcd(ctx context.Context) error
	restartEtcd(ctx context.Context) error
	// etcdData is the folder with the data of etcd.
	etcdData() string
	// compact discards etcd's history.
	compact(ctx context.Context) error
	stop() error
}
