package dump

import (
	"context"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/follow"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/reader"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/show"
)

// options are what flags and arguments amount to.
type options struct {
	*reader.Reader
	style show.Style
}

func (f *flags) toOptions(ctx context.Context, args []string, streams genericiooptions.IOStreams) (*options, error) {
	style, err := f.style.Style()
	if err != nil {
		return nil, err
	}
	if f.watch {
		if err := (follow.Options{Style: style}).Check(); err != nil {
			return nil, err
		}
	}
	read, err := f.reader.Reader(ctx, args, f.style.Cached(), streams)
	return &options{read, style}, err
}
