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

// run serves the types until it is stopped, or starts a background process that does.
func (o *serveVerb) run(ctx context.Context) (err error) {
	if o.detached {
		return o.detach(ctx)
	}
	s := &cacheServer{serveVerb: o, started: time.Now()}
	if !o.ReadsFiles() {
		if s.identity, err = localserver.Identity(ctx, o.Rest); err != nil {
			return err
		}
	}
	if err := s.watchFiles(ctx); err != nil {
		return err
	}
	if err := s.resolveTypes(ctx); err != nil {
		return err
	}
	if s.tracker, err = o.Tracker(); err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
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
		Resolve:   s.resolve,
		CanAnswer: s.canAnswer, Handler: s.server, Idle: o.idle, End: stop}
	if o.web {
		page, closePage, err := s.page()
		if err != nil {
			return err
		}
		defer closePage()
		options.Page = page
	}
	if o.metrics.IsValid() {
		if options.Metrics, err = s.metricsServer(); err != nil {
			return err
		}
	}
	if err := s.factory.Start(followCtx); err != nil {
		return err
	}
	tracked.Go(func() { _ = s.tracker.Run(followCtx) }) // both ended by end
	tracked.Go(func() { o.Follow(followCtx, s.tracker.Refresh) })
	if o.Rest.ExecProvider != nil {
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
	err = o.serve(ctx, options)
	if cause := context.Cause(ctx); errors.Is(cause, errOtherAccount) {
		return cause
	}
	if errors.Is(context.Cause(ctx), context.Canceled) && err == nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// errOtherAccount stops the server when its exec plugin returns credentials of another account.
var errOtherAccount = errors.New("the credentials belong to another account now: restart the server")

// accountInterval is the interval of checks of the exec plugin's account. Tests change it.
var accountInterval = time.Minute

// watchAccount stops the server when renewed credentials belong to another account, because it would mix the
// objects of both.
func (s *cacheServer) watchAccount(ctx context.Context, leave context.CancelCauseFunc) {
	ticker := time.NewTicker(accountInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		identity, err := localserver.Identity(ctx, s.Rest)
		if err == nil && identity != s.identity {
			leave(errOtherAccount)
			return
		}
	}
}

// serve listens and prints the addresses.
func (o *serveVerb) serve(ctx context.Context, options localserver.Options) error {
	open := func() {
		if options.Page != nil {
			fmt.Fprintf(o.ErrOut, "open %s (one-time link for one browser)\n", options.Page.LoginLink())
		}
	}
	if o.ReadsFiles() {
		return localserver.ServePage(ctx, options.Page, options.Idle, open)
	}
	return localserver.Serve(ctx, options, func() {
		fmt.Fprintf(o.ErrOut, "serving the cache of %s; commands use it from now on\n",
			o.Rest.Host)
		if options.Metrics != nil {
			fmt.Fprintf(o.ErrOut, "metrics: http://%s/metrics\n", options.Metrics.Listener.Addr())
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
