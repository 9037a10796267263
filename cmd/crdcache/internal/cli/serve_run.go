package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
)

// run serves the types of all clusters until it is stopped, or starts a background process that does.
func (o *serveVerb) run(ctx context.Context) error {
	if o.detached {
		return o.detach(ctx)
	}
	servers, failed := o.prepareServers(ctx)
	defer func() {
		for _, s := range servers {
			s.shutdown()
		}
	}()
	if len(servers) == 0 {
		return failed
	}
	serving, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	shared, err := o.share(servers)
	if err != nil {
		return err
	}
	defer shared.close()
	errs := make([]error, len(servers))
	var ended sync.WaitGroup
	for i, s := range servers {
		ended.Go(func() { // the end of one ends the others
			if errs[i] = s.runCluster(serving, leave, shared); errs[i] != nil && s.Cluster != "" {
				errs[i] = fmt.Errorf("%s: %w", s.Cluster, errs[i])
			}
			leave(nil)
		})
	}
	ended.Wait()
	err = errors.Join(errs...)
	switch {
	case errors.Is(context.Cause(serving), errOtherAccount):
		return errOtherAccount
	case err == nil && ctx.Err() != nil:
		return errInterrupted
	}
	return errors.Join(err, failed)
}

// prepareServers creates the caches of the clusters, in their order. A cluster that fails is a warning.
func (o *serveVerb) prepareServers(ctx context.Context) (servers []*cacheServer, failed error) {
	failed = session.EachCluster(ctx, o.readers, func(ctx context.Context, r *session.Reader) error {
		cluster := *o
		cluster.Reader = r
		s := &cacheServer{serveVerb: &cluster, started: time.Now()}
		if err := s.open(ctx); err != nil {
			return err
		}
		if err := s.AwaitTurn(ctx); err != nil {
			s.shutdown()
			return err
		}
		servers = append(servers, s)
		return nil
	})
	return servers, failed
}

// open prepares the caches. After an error nothing needs to be released.
func (s *cacheServer) open(ctx context.Context) (err error) {
	if !s.ReadsFiles() {
		if s.identity, s.accountKnown, err = localserver.Identity(ctx, s.Rest); err != nil {
			return err
		}
	}
	if err := s.watchFiles(ctx); err != nil {
		return err
	}
	if s.Cluster == "" { // one of several clusters can be unreachable
		if err := s.resolveTypes(ctx); err != nil {
			return err
		}
	}
	if s.tracker, err = s.Tracker(); err != nil {
		return err
	}
	return s.prepare()
}

// sharedServers are the parts of the process that all clusters share.
type sharedServers struct {
	activity *localserver.Activity
	page     *localserver.Page    // nil without --web
	metrics  *localserver.Metrics // nil without --metrics-address
	close    func()
	first    *cacheServer
	// sockets are the clusters that use a socket, by identity. Two contexts can have the same.
	sockets map[string]*cacheServer
}

func (o *serveVerb) share(servers []*cacheServer) (shared *sharedServers, err error) {
	shared = &sharedServers{activity: localserver.NewActivity(o.idle), close: func() {}, first: servers[0],
		sockets: map[string]*cacheServer{}}
	for _, s := range servers {
		if shared.sockets[s.identity] == nil {
			shared.sockets[s.identity] = s
		}
	}
	if o.web {
		if shared.page, shared.close, err = o.page(servers); err != nil {
			return nil, err
		}
	}
	if o.metrics.IsValid() {
		if shared.metrics, err = o.metricsServer(servers); err != nil {
			shared.close()
			return nil, err
		}
	}
	return shared, nil
}

// runCluster serves a cluster. The first one also serves the page and the metrics.
func (s *cacheServer) runCluster(ctx context.Context, leave context.CancelCauseFunc,
	shared *sharedServers) error {
	followCtx, end := context.WithCancel(ctx)
	var tracked, reconciled sync.WaitGroup
	defer tracked.Wait()
	defer end()
	reconcileCtx, release := context.WithCancel(followCtx)
	stop := func() {
		release()
		reconciled.Wait()
		s.shutdown()
	}
	defer stop()
	options := localserver.Options{Dir: localserver.SocketDirFor(s.identity), Info: s.info,
		Resolve: s.resolve, CanAnswer: s.canAnswer, Handler: s.server, Activity: shared.activity, End: stop}
	if shared.page != nil {
		options.Page = &localserver.Page{LoginLink: shared.page.LoginLink}
	}
	if s == shared.first {
		options.Page, options.Metrics = shared.page, shared.metrics
	}
	if err := s.factory.Start(followCtx); err != nil {
		return err
	}
	tracked.Go(func() { _ = s.tracker.Run(followCtx) }) // both ended by end
	tracked.Go(func() { s.Follow(followCtx, s.tracker.Refresh) })
	if s.Rest.ExecProvider != nil {
		tracked.Go(func() { s.watchAccount(followCtx, leave) }) // ended by end
	}
	reconciled.Go(func() { s.reconciler.Run(reconcileCtx) }) // both ended by stop
	if s.watcher != nil {
		reconciled.Go(func() {
			if err := s.watcher.Run(reconcileCtx); err != nil {
				s.Warnf("changes of the config files are not noticed: %v", err)
			}
		})
	}
	if owner := shared.sockets[s.identity]; owner != s {
		s.Warnf("commands use the cache of %s, which is the same cluster and user", owner.Cluster)
		<-ctx.Done()
		return nil
	}
	return s.serve(ctx, options)
}

// errOtherAccount stops the server when its exec plugin returns credentials of another account.
var errOtherAccount = errors.New("the credentials belong to another account now: restart the server")

// accountInterval is the interval of checks of the exec plugin's account. Tests change it.
var accountInterval = time.Minute

// watchAccount stops the server when renewed credentials belong to another account, because it would mix the
// objects of both.
func (s *cacheServer) watchAccount(ctx context.Context, leave context.CancelCauseFunc) {
	account := "" // until it is known
	if s.accountKnown {
		account = s.identity
	}
	ticker := time.NewTicker(accountInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		identity, known, err := localserver.Identity(ctx, s.Rest)
		switch {
		case err != nil || !known || identity == account:
		case account != "":
			leave(errOtherAccount)
			return
		default:
			account = identity
			s.Warnf("commands do not use the cache, because the API server did not report the user at the start: restart the server")
		}
	}
}

// serve listens and prints the addresses.
func (o *serveVerb) serve(ctx context.Context, options localserver.Options) error {
	errOut := o.flags.Streams(o.streams).ErrOut // the page and the metrics are those of all clusters
	open := func() {
		if options.Page != nil && options.Page.Listener != nil {
			fmt.Fprintf(errOut, "open %s (one-time link for one browser)\n", options.Page.LoginLink())
		}
	}
	if o.ReadsFiles() {
		return localserver.ServePage(ctx, options.Page, options.Activity, open)
	}
	return localserver.Serve(ctx, options, func() {
		fmt.Fprintf(o.ErrOut, "serving the cache of %s; commands use it from now on\n",
			o.Rest.Host)
		if options.Metrics != nil {
			fmt.Fprintf(errOut, "metrics: http://%s/metrics\n", options.Metrics.Listener.Addr())
		}
		open()
	})
}

// resolveTypes reports misspelled types as errors before anything is cached. Types of a config or a pattern
// can be installed later.
func (s *cacheServer) resolveTypes(ctx context.Context) error {
	limitedCtx, cancel := s.Limit(ctx)
	defer cancel()
	resources, unresolved := s.Resolve(limitedCtx, s.TypeNames())
	s.announced, s.reportedAbsent = map[schema.GroupVersionResource]bool{}, map[string]bool{}
	for _, r := range resources {
		s.announced[r.GVR] = true
	}
	patterns := false
	for _, err := range session.SplitJoined(unresolved) {
		var absent *discovery.NoMatchError
		isAbsent := errors.As(err, &absent)
		pattern := isAbsent && strings.Contains(absent.Name, "*")
		switch {
		case !isAbsent && s.ReadsFiles() &&
			len(resources) > 0: // unreadable files do not affect the others
			fmt.Fprintf(s.ErrOut, "error: %s\n", print.OneSafeLine(err.Error()))
			continue
		case !isAbsent || !pattern && !s.fromConfig:
			return unresolved
		}
		patterns = patterns || pattern
		s.reportedAbsent[absent.Name] = true
		s.Warnf("cached when it is installed: %v", err)
	}
	if len(resources) == 0 && !patterns {
		return unresolved
	}
	return nil
}

// detach starts the server as a background process and waits until it answers.
func (o *serveVerb) detach(ctx context.Context) error {
	if err := o.Invalid(); err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	info, err := localserver.Detach(ctx, o.Rest, program, o.background, o.ErrOut)
	var ended *localserver.EndedError
	switch {
	case errors.As(err, &ended) && ended.Code > 0:
		return &reportedError{code: ended.Code}
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: the server did not answer within %v (--timeout) and was stopped",
			session.ErrNotSynced, o.Timeout)
	case err != nil:
		return err
	}
	fmt.Fprintf(o.ErrOut, "process %d serves; its log is %s\n", info.PID,
		localserver.SocketDirFor(info.Identity).Log())
	return nil
}

// withoutDetach returns a command line without --detach.
func withoutDetach(args []string) []string {
	rest := slices.Index(args, "--")
	if rest < 0 {
		rest = len(args)
	}
	flags := slices.DeleteFunc(slices.Clone(args[:rest]), func(arg string) bool {
		return arg == "--detach" ||
			strings.HasPrefix(arg, "--detach=")
	})
	return append(flags, args[rest:]...)
}
