package dump

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/cli/exit"
)

// resolve looks up every type, each once however many names it was given by.
func (o *options) resolve(ctx context.Context) ([]discovery.Resource, error) {
	client, err := discovery.NewClient(o.config, discovery.Options{Timeout: o.config.Timeout})
	if err != nil {
		return nil, err
	}
	lookup := client.Resolve
	if len(o.types) > 1 {
		// One look at what there is does for all names; alone, each that is not found would look again.
		catalog, err := client.Catalog(ctx)
		if err != nil {
			return nil, o.explain(ctx, err)
		}
		lookup = func(_ context.Context, name string) (discovery.Resolution, error) { return catalog.Resolve(name) }
	}
	var resources []discovery.Resource
	var errs []error
	seen := map[schema.GroupVersionResource]bool{}
	for _, name := range o.types {
		resolution, err := lookup(ctx, name)
		if err != nil {
			errs = append(errs, o.explain(ctx, err))
			continue
		}
		o.mention(name, resolution)
		for _, r := range resolution.Resources {
			if !seen[r.GVR] {
				seen[r.GVR] = true
				resources = append(resources, r)
			}
		}
	}
	return resources, errors.Join(errs...)
}

// explain says of a server that did not answer where it was looked for, why it did not, and what may help.
func (o *options) explain(ctx context.Context, err error) error {
	var noMatch *discovery.NoMatchError
	var request *url.Error
	var status *apierrors.StatusError
	switch {
	case errors.As(err, &noMatch), errors.Is(err, context.Canceled):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: the API server at %s did not tell within %v which types it has", exit.ErrNotSynced, o.config.Host, o.timeout)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the API server at %s did not answer a request in time (--request-timeout): %w", o.config.Host, context.DeadlineExceeded)
	case errors.As(err, &request):
		return fmt.Errorf("cannot reach the API server at %s: %w%s", o.config.Host, request.Err, o.hint())
	case errors.As(err, &status) && apierrors.IsUnauthorized(status):
		return fmt.Errorf("the API server at %s does not accept the credentials; log in again, or check the user of the kubeconfig: %w",
			o.config.Host, status)
	}
	// One of the two documents is enough to show what is wrong.
	return fmt.Errorf("the API server at %s gave no usable answer; is this the address of one? %w", o.config.Host, exit.Split(err)[0])
}

// hint tells of a missing kubeconfig, which otherwise shows as a server that nobody named.
func (o *options) hint() string {
	if o.config.Host != defaultHost {
		return ""
	}
	return "; is there no kubeconfig? Name one with --kubeconfig or KUBECONFIG"
}

// defaultHost is the server when no kubeconfig names one, as with kubectl.
const defaultHost = "http://localhost:8080"

// maxAlternatives is how many other meanings of a name are told.
const maxAlternatives = 5

// mention tells on stderr what a resolution left open.
func (o *options) mention(name string, r discovery.Resolution) {
	for _, failed := range r.Unknown {
		fmt.Fprintf(o.ErrOut, "warning: %s may have members that could not be discovered: %v\n", name, failed)
	}
	if len(r.Resources) == 0 {
		fmt.Fprintf(o.ErrOut, "warning: %s has no types that can be listed and watched\n", name)
	}
	if len(r.Alternatives) > 0 {
		fmt.Fprintf(o.ErrOut, "warning: %s is read as %s; it could also be", name, r.Resources[0])
		for i, other := range r.Alternatives {
			if i == maxAlternatives {
				fmt.Fprintf(o.ErrOut, " and %d more", len(r.Alternatives)-i)
				break
			}
			if i > 0 {
				fmt.Fprint(o.ErrOut, ",")
			}
			fmt.Fprintf(o.ErrOut, " %s", other)
		}
		fmt.Fprintln(o.ErrOut)
	}
}
