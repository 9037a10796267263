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
	// PID is that of the latest process, also when it is dead.
	PID int `json:"pid"`
	// Alive says that the process exists, Ready that it answers its probe.
	Alive bool `json:"alive"`
	Ready bool `json:"ready"`
	// Exit says how a dead process ended.
	Exit string `json:"exit,omitempty"`
}

// Status asks both components how they are. It does not wait for operations
// under way.
func (cp *ControlPlane) Status(ctx context.Context) Status {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return Status{
		Dir:           cp.layout.Dir,
		Kubeconfig:    cp.layout.Kubeconfig(),
		SupervisorPID: lockHolder(cp.layout.lock()),
		Etcd:          componentStatus(ctx, cp.etcd, cp.probes.etcdURL, cp.probes.etcdReady),
		APIServer:     componentStatus(ctx, cp.apiServer, cp.probes.apiServerURL, cp.probes.apiServerReady),
	}
}

func componentStatus(ctx context.Context, p *process, url string, probe func(context.Context) error) ComponentStatus {
	status := ComponentStatus{URL: url}
	r := p.current()
	if r == nil {
		return status
	}
	status.PID = r.pid
	status.Alive = r.alive()
	if status.Alive {
		status.Ready = probe(ctx) == nil
	} else if r.err != nil {
		status.Exit = r.err.Error()
	} else {
		status.Exit = "exit status 0"
	}
	return status
}
