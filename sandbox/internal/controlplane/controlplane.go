package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Config has the options of a sandbox. Only Dir is required.
type Config struct {
	// Dir has all files of the sandbox. It is created if it is missing. Data of an earlier run is reused.
	Dir string
	// Port is the API server's port. 0 selects a free one.
	Port int
	// EtcdArgs and APIServerArgs are additional flags, as "flag=value" with or without leading dashes. They
	// override the default flags.
	EtcdArgs      []string
	APIServerArgs []string
	// AuditLog makes the API server write one line of metadata per request to Layout.AuditLog.
	AuditLog bool
	// Binaries is the folder of etcd and kube-apiserver, by default the folder of this program.
	Binaries string
	// Ephemeral deletes Dir when the sandbox stops or its supervisor dies.
	Ephemeral bool
}

// ErrInUse means that another sandbox runs in the directory.
var ErrInUse = errors.New("directory is in use")

// ControlPlane is a running etcd and kube-apiserver, supervised by this process.
type ControlPlane struct {
	config    Config
	layout    Layout
	lock      *fileLock
	watchdog  *watchdog
	leases    []*portLease
	probes    *probes
	etcd      *component
	apiServer *component
	control   *controlServer

	// ops serializes operations that start or stop a component.
	ops      sync.Mutex
	stopOnce sync.Once
	// life ends when Stop begins, which cancels a running operation.
	life    context.Context
	endLife context.CancelFunc

	stopRequested chan struct{} // closed by the first Client.Down
	requestStop   func()
}

// Start starts etcd and kube-apiserver and returns when both are ready. If it returns an error, also after
// ctx has ended, nothing is left running. The error is ErrInUse if a sandbox runs in the directory.
func Start(ctx context.Context, config Config) (*ControlPlane, error) {
	layout, err := NewLayout(config.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(layout.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFile(layout.lock())
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%s: %w by the sandbox of process %d", layout.Dir, ErrInUse,
			lockHolder(layout.lock()))
	}
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{config: config, layout: layout, lock: lock, stopRequested: make(chan struct{})}
	cp.life, cp.endLife = context.WithCancel(context.Background())
	cp.requestStop = sync.OnceFunc(func() { close(cp.stopRequested) })
	if err := cp.start(ctx); err != nil {
		cp.Stop()
		return nil, err
	}
	return cp, nil
}

func (cp *ControlPlane) start(ctx context.Context) (err error) {
	for _, c := range []Component{Etcd, APIServer} { // left behind when the machine crashed
		_ = os.Remove(cp.layout.pidFile(string(c)))
	}
	if cp.watchdog, err = startWatchdog(cp.layout, cp.lock, cp.config.Ephemeral); err != nil {
		return err
	}
	creds, err := loadTokens(cp.layout)
	if err != nil {
		return err
	}
	if creds.caPEM, err = loadCA(cp.layout); err != nil {
		return err
	}
	// Reserve the user's port first, so that an automatic port cannot take it.
	apiServerPort, err := cp.lease(cp.config.Port)
	if err != nil {
		return err
	}
	etcdPort, err := cp.lease(0)
	if err != nil {
		return err
	}
	cp.probes = newProbes(etcdPort, apiServerPort, creds.adminToken)
	etcd, err := etcdServer(cp.layout, cp.config, etcdPort)
	if err != nil {
		return err
	}
	apiServer, err := apiServerServer(cp.layout, cp.config, apiServerPort, etcd.URL)
	if err != nil {
		return err
	}
	cp.etcd = newEtcd(cp.layout, etcd, cp.probes.etcdReady)
	cp.apiServer = newAPIServer(cp.layout, apiServer, cp.probes.apiServerReady)
	if err := cp.etcd.start(ctx); err != nil {
		return err
	}
	if err := cp.apiServer.start(ctx); err != nil {
		return err
	}
	if creds.caPEM == nil {
		creds.caPEM = apiServer.SecureServing.CA
		if err := writeFile(cp.layout.caCert(), creds.caPEM); err != nil {
			return err
		}
	}
	if err := writeKubeconfig(cp.layout.Kubeconfig(), cp.probes.apiServerURL, creds); err != nil {
		return err
	}
	cp.control, err = serveControl(cp)
	return err
}

func (cp *ControlPlane) lease(port int) (int, error) {
	lease, err := leasePort(port)
	if err != nil {
		return 0, err
	}
	cp.leases = append(cp.leases, lease)
	return lease.port, nil
}

// Layout returns the paths of the sandbox's files.
func (cp *ControlPlane) Layout() Layout { return cp.layout }

// StopRequested is closed when another process requests the end of the sandbox.
func (cp *ControlPlane) StopRequested() <-chan struct{} { return cp.stopRequested }

// errStopped is the error of operations on a sandbox that is stopping.
var errStopped = errors.New("the sandbox is stopping")

// Restart restarts a component on the same port, or starts it if it is dead. It returns when the component is
// ready. After a restart of etcd, it also waits for a running API server.
func (cp *ControlPlane) Restart(ctx context.Context, c Component) error {
	cp.ops.Lock()
	defer cp.ops.Unlock()
	if cp.life.Err() != nil {
		return errStopped
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(cp.life, cancel)()
	if c == APIServer {
		if !cp.etcd.alive() {
			return errors.New("etcd is not running: restart it first, the API server cannot start without it")
		}
		cp.apiServer.stop()
		return cp.apiServer.start(ctx)
	}
	cp.etcd.stop()
	if err := cp.etcd.start(ctx); err != nil {
		return err
	}
	if !cp.apiServer.alive() {
		return nil
	}
	readyCtx, cancelReady := context.WithTimeout(ctx, readyTimeout)
	defer cancelReady()
	return cp.apiServer.awaitReady(readyCtx)
}

// Kill kills a component and returns when the process has ended. Killing a dead component has no effect.
func (cp *ControlPlane) Kill(c Component) error {
	cp.ops.Lock()
	defer cp.ops.Unlock()
	if cp.life.Err() != nil {
		return errStopped
	}
	if c == Etcd {
		cp.etcd.kill()
	} else {
		cp.apiServer.kill()
	}
	return nil
}

// Stop stops both components and releases the directory. It may be called repeatedly, and returns when
// everything has stopped.
func (cp *ControlPlane) Stop() {
	cp.stopOnce.Do(cp.stop)
}

func (cp *ControlPlane) stop() {
	cp.endLife()
	cp.ops.Lock()
	defer cp.ops.Unlock()
	if cp.apiServer != nil {
		// All state is in etcd, so a graceful shutdown is unnecessary.
		cp.apiServer.kill()
	}
	if cp.etcd != nil {
		if cp.config.Ephemeral {
			cp.etcd.kill()
		} else {
			cp.etcd.stop()
		}
	}
	for _, lease := range cp.leases {
		lease.release()
	}
	_ = os.Remove(cp.layout.state())
	if cp.config.Ephemeral {
		_ = os.RemoveAll(cp.layout.Dir)
	}
	if cp.control != nil {
		cp.control.close()
	}
	if cp.watchdog != nil {
		cp.watchdog.dismiss()
	}
	// Last, because a free lock means that the sandbox has ended.
	cp.lock.release()
}
