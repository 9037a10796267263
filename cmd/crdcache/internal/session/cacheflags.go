package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/local"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
)

// Values of --cache, besides the path of a socket.
const (
	cacheAuto = "auto"
	cacheNone = "none"
)

// CacheFlags say whether a server that keeps types may take the place of the cluster.
type CacheFlags struct {
	cache   string
	verbose bool
	set     *pflag.FlagSet // nil where there are no such flags
}

func (f *CacheFlags) add(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.cache, "cache", cacheAuto, "Whether the server that 'serve' runs may take the place of the cluster, for types that it keeps and is in contact about: auto asks it where there is one; none reads the cluster; PATH is the socket of a server that has to be there.")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "Say on stderr of each type whether a server or the cluster is read, and why.")
}

func (f *CacheFlags) complete(cmd *cobra.Command) {
	if f.set != nil {
		print.CompleteWords(cmd, "cache", []string{cacheAuto, cacheNone})
	}
}

// validate refuses what is neither a word nor a path, and a server beside files.
func (f *CacheFlags) validate(offline bool) error {
	if f.set == nil {
		return nil
	}
	for _, name := range []string{"cache", "verbose"} {
		if offline && f.set.Changed(name) {
			return exit.Usagef("--from and --%s exclude each other: no server keeps what is in files", name)
		}
	}
	if f.cache != cacheAuto && f.cache != cacheNone && !strings.Contains(f.cache, "/") {
		return exit.Usagef("--cache is %q: give %s, %s, or the path of a server's socket, which 'serve status' prints", f.cache, cacheAuto, cacheNone)
	}
	return nil
}

// apply has the reader ask the server for what it keeps. Where there is none, nothing changes.
func (f *CacheFlags) apply(ctx context.Context, r *Reader) error {
	r.verbose = f.verbose
	if f.set == nil || r.Target.Offline() {
		r.noServer = errors.New("files are read")
		return nil
	}
	var err error
	switch f.cache {
	case cacheNone:
		r.noServer = errors.New("--cache says so")
		return nil
	case cacheAuto:
		if r.server, r.noServer = local.NewClient(ctx, r.Target.Config); r.noServer == nil {
			_, r.noServer = r.server.Info(ctx) // one that does not answer is not waited for again and again
		}
		if r.noServer != nil {
			r.server = nil
			r.Say("the cluster is read: %v", r.noServer)
			return nil
		}
	default:
		if r.server, err = local.NewClientAt(ctx, r.Target.Config, f.cache); err != nil {
			return fmt.Errorf("--cache: %w", err)
		}
	}
	r.Target.Config, err = local.NewTransport(r.server, r.Target.Config, func(text string) { r.Say("%s", text) })
	return err
}

// HasServer reports whether there is a server that keeps types.
func (r *Reader) HasServer() bool { return r.server != nil }

// Say tells a person who asks for it (-v) what is read.
func (r *Reader) Say(format string, args ...any) {
	if r.verbose {
		fmt.Fprintf(r.ErrOut, "note: %s\n", print.Line(fmt.Sprintf(format, args...)))
	}
}
