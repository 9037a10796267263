package controlplane

import "context"

// Status describes a running sandbox.
type Status struct {
	Dir           string          `json:"dir"`
	Kubeconfig    string          `json:"kubeconfig"`
	SupervisorPID int             `json:"supervisorPID"`
	Etcd          ComponentStatus `json:"etcd"`
	APIServer     ComponentStatus `json:"apiserver"`
}

// ComponentStatus describes one component.
type ComponentStatus struct {
	URL string `json:"url"`
	// PID is the process ID of the latest process, which may be dead.
	PID int `json:"pid"`
	// Alive means that the process exists, Ready that it answers its probe.
	Alive bool `json:"alive"`
	Ready bool `json:"ready"`
}

// Status probes both components. It does not wait for running operations.
func (cp *ControlPlane) Status(ctx context.Context) Status {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return Status{
		Dir:           cp.layout.Dir,
		Kubeconfig:    cp.layout.Kubeconfig(),
		SupervisorPID: lockHolder(cp.layout.lock()),
		Etcd:          cp.etcd.status(ctx, cp.probes.etcdURL),
		APIServer:     cp.apiServer.status(ctx, cp.probes.apiServerURL),
	}
}

func (c *component) status(ctx context.Context, url string) ComponentStatus {
	alive := c.alive()
	return ComponentStatus{URL: url, PID: c.pid(), Alive: alive, Ready: alive && c.ready(ctx) == nil}
}
