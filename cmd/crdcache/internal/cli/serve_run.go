package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/local"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
)

// run keeps the types and serves them until somebody or something ends it, or has another process do so.
func (o *serveOptions) run(ctx context.Context) error {
	if o.detached != nil {
		return o.detach(ctx)
	}
	identity, err := local.Identity(o.Target.Config)
	if err != nil {
		return err
	}
	waiting, cancel := o.Target.Limit(ctx)
	defer cancel()
	types, err := o.find(waiting)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	tracker, err := o.Target.Tracker()
	if err != nil {
		return err
	}
	tracked := make(chan struct{})
	go func() { defer close(tracked); _ = tracker.Run(ctx) }() // ended by end
	defer func() { end(nil); <-tracked }()
	s := &serving{serveOptions: o, tracker: tracker, identity: identity, started: time.Now()}
	if err := s.keep(types.Resources); err != nil {
		return err
	}
	defer s.shutdown()
	options := local.Options{Place: local.PlaceOf(identity), Info: s.info, Resolve: s.resolve, Keeps: s.keeps, Handler: s.server, Idle: o.idle}
	if o.web != nil {
		page, err := newPage(s)
		if err != nil {
			return err
		}
		defer page.close()
		options.Page = page.local()
	}
	if err := s.factory.Start(ctx); err != nil {
		return err
	}
	err = local.Serve(ctx, options, func() {
		fmt.Fprintf(o.ErrOut, "serving what is kept of %s; commands ask here from now on\n", o.Target.Config.Host)
		if options.Page != nil {
			fmt.Fprintf(o.ErrOut, "open %s (lets one browser in, once)\n", options.Page.Link())
		}
	})
	if errors.Is(context.Cause(ctx), context.Canceled) && err == nil && ctx.Err() != nil {
		return exit.ErrInterrupted
	}
	return err
}

// find finds the types. Those of a config that are not installed are left out.
func (o *serveOptions) find(ctx context.Context) (*session.Types, error) {
	types, unresolved := o.Find(ctx)
	if unresolved == nil || types == nil || !o.declared {
		return types, unresolved
	}
	for _, err := range exit.Split(unresolved) {
		var absent *discovery.NoMatchError
		if !errors.As(err, &absent) {
			return nil, unresolved
		}
		o.Warn(fmt.Sprintf("a type of the config is not kept: %s", print.Line(err.Error())))
	}
	return types, nil
}

// detach starts the server as a process of its own, and waits until it answers.
func (o *serveOptions) detach(ctx context.Context) error {
	ctx, cancel := o.Target.Limit(ctx)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	info, err := local.Detach(ctx, o.Target.Config, program, o.detached, o.ErrOut)
	var ended *local.EndedError
	switch {
	case errors.As(err, &ended) && ended.Code > 0:
		return &exit.ReportedError{Code: ended.Code}
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: the server did not answer within %v (--timeout), and was ended", exit.ErrNotSynced, o.Target.Timeout)
	case err != nil:
		return err
	}
	fmt.Fprintf(o.ErrOut, "process %d serves; what it has to say is in %s\n", info.PID, local.PlaceOf(info.Identity).Log())
	return nil
}

// undetached is a command line without --detach.
func undetached(args []string) []string {
	rest := slices.Index(args, "--")
	if rest < 0 {
		rest = len(args)
	}
	flags := slices.DeleteFunc(slices.Clone(args[:rest]), func(arg string) bool { return arg == "--detach" || strings.HasPrefix(arg, "--detach=") })
	return append(flags, args[rest:]...)
}
