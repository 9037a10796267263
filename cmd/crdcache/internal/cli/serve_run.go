package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/local"
)

// run keeps the types and serves them until somebody or something ends it.
func (o *serveOptions) run(ctx context.Context) error {
	identity, err := local.Identity(o.Target.Config)
	if err != nil {
		return err
	}
	waiting, cancel := o.Target.Limit(ctx)
	defer cancel()
	types, unresolved := o.Find(waiting)
	if unresolved != nil {
		return unresolved
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
