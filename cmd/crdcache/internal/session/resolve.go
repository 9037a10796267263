package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdcache/crdcache/discovery"
)

// Catalog discovers the server's types with one request. Errors have a remedy.
func (t *Target) Catalog(ctx context.Context) (*discovery.Catalog, error) {
	client, err := t.discoveryClient()
	if err != nil {
		return nil, err
	}
	catalog, err := client.Catalog(ctx)
	if err != nil {
		return nil, t.Explain(ctx, err)
	}
	return catalog, nil
}

func (t *Target) discoveryClient() (*discovery.Client, error) {
	return discovery.NewClient(t.Rest, discovery.Options{Timeout: t.Rest.Timeout})
}

// Resolve resolves type names to distinct types. It returns them together with the joined errors of names
// without a type, and warns about ambiguous names.
func (t *Target) Resolve(ctx context.Context, names []string) ([]discovery.Resource, error) {
	client, err := t.discoveryClient()
	if err != nil {
		return nil, err
	}
	lookup := client.Resolve
	if len(names) > 1 {
		// One catalog serves all names. Separate lookups would refresh discovery for each missing name.
		catalog, err := t.Catalog(ctx)
		if err != nil {
			return nil, err
		}
		lookup = func(_ context.Context,
			name string) (discovery.Resolution, error) {
			return catalog.Resolve(name)
		}
	}
	var resources []discovery.Resource
	var errs []error
	seenTypes := map[schema.GroupVersionResource]bool{}
	for _, name := range names {
		resolution, err := lookup(ctx, name)
		var noMatch *discovery.NoMatchError
		if errors.As(err, &noMatch) {
			errs = append(errs, t.explainNoMatch(noMatch, len(resources) > 0))
			continue
		}
		if err != nil {
			errs = append(errs, t.Explain(ctx, err))
			continue
		}
		t.warnAmbiguous(name, resolution)
		for _, r := range resolution.Resources {
			t.RecordUse(r.GVR.GroupResource())
			if !seenTypes[r.GVR] {
				seenTypes[r.GVR] = true
				resources = append(resources, r)
			}
		}
	}
	// An unreadable file can contain the requested type.
	return resources, errors.Join(append(errs, t.FilesErr())...)
}

// explainNoMatch adds a remedy if there are no suggestions. With followsType, the user may have meant the
// name of an object, as in kubectl.
func (t *Target) explainNoMatch(noMatch *discovery.NoMatchError, followsType bool) error {
	switch {
	case len(noMatch.Suggestions) > 0:
		return noMatch
	case followsType && len(validation.IsDNS1123Subdomain(noMatch.Name)) == 0:
		return fmt.Errorf("%w; to select an object of this name, use --field-selector metadata.name=%s",
			noMatch, noMatch.Name)
	case t.ReadsFiles():
		return fmt.Errorf("%w; the files have neither objects of this type nor its CustomResourceDefinition",
			noMatch)
	}
	return noMatch
}

// Explain adds the server, the cause and a remedy to an error of a request.
func (t *Target) Explain(ctx context.Context, err error) error {
	var noMatch *discovery.NoMatchError
	var urlErr *url.Error
	var statusErr *apierrors.StatusError
	switch {
	case errors.As(err, &noMatch), errors.Is(err, context.Canceled):
		return err
	case apierrors.IsTooManyRequests(err), errors.Is(err, context.DeadlineExceeded) &&
		t.throttle.lastAnswerWas429.Load():
		return t.explainThrottled(ctx, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		timeoutErr := fmt.Errorf("%w: the API server at %s did not complete discovery within %v",
			ErrNotSynced, t.Rest.Host, t.Timeout)
		for _, cause := range SplitJoined(err) {
			if !errors.Is(cause, context.DeadlineExceeded) {
				return fmt.Errorf("%w: %w", timeoutErr, cause)
			}
		}
		return timeoutErr
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the API server at %s did not answer a request in time (--request-timeout): %w",
			t.Rest.Host, context.DeadlineExceeded)
	case errors.As(err, &urlErr):
		return fmt.Errorf("cannot reach the API server at %s: %w%s", t.Rest.Host, urlErr.Err,
			t.kubeconfigHint())
	case errors.As(err, &statusErr) && apierrors.IsUnauthorized(statusErr):
		return fmt.Errorf("the API server at %s does not accept the credentials; log in again, or check the user of the kubeconfig: %w",
			t.Rest.Host, statusErr)
	case errors.As(err, &statusErr) && apierrors.IsForbidden(statusErr):
		return err // the status states the user and the permission
	}
	// One of the two discovery errors is enough.
	return fmt.Errorf("the API server at %s did not answer like an API server; check the address: %w",
		t.Rest.Host, SplitJoined(err)[0])
}

// explainThrottled returns one error for all requests with status 429.
func (t *Target) explainThrottled(ctx context.Context, err error) error {
	var statusErr *apierrors.StatusError
	if !errors.As(err, &statusErr) {
		statusErr = apierrors.NewTooManyRequestsError("the server asks to try again later")
	}
	throttledErr := fmt.Errorf("the API server at %s answers TooManyRequests: it is overloaded, or limits your requests by API priority and fairness; "+
		"try again later, or wait longer with --timeout: %w", t.Rest.Host, statusErr)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrNotSynced, throttledErr)
	}
	return throttledErr
}

func (t *Target) kubeconfigHint() string {
	if !t.noKubeconfig || t.Rest.Host != defaultHost {
		return ""
	}
	return "; no kubeconfig was found: set --kubeconfig or KUBECONFIG"
}

// defaultHost is kubectl's default server without a kubeconfig.
const defaultHost = "http://localhost:8080"

const maxAlternatives = 5

// warnAmbiguous warns about alternatives and types that could not be discovered.
func (t *Target) warnAmbiguous(name string, r discovery.Resolution) {
	for _, failure := range r.FailedGroupVersions {
		t.Warnf("%s may have members that could not be discovered: %v", name, failure)
	}
	if len(r.Resources) == 0 {
		t.Warnf("%s has no types that can be listed and watched", name)
	}
	if len(r.Alternatives) > 0 {
		var names []string
		for _, alternative := range r.Alternatives[:min(len(r.Alternatives), maxAlternatives)] {
			names = append(names, alternative.String())
		}
		more := ""
		if omitted := len(r.Alternatives) - len(names); omitted > 0 {
			more = fmt.Sprintf(" and %d more", omitted)
		}
		t.Warnf("%s is read as %s; it could also be %s%s", name, r.Resources[0], strings.Join(names, ", "),
			more)
	}
}

// SplitTypes splits arguments at commas, removes duplicates and validates the names.
func SplitTypes(args []string) ([]string, error) {
	var types []string
	for _, arg := range args {
		for name := range strings.SplitSeq(arg, ",") {
			if name == "" {
				return nil, Usagef("%q has an empty type name", arg)
			}
			if parts := strings.Split(name, "/"); len(parts) == 3 {
				return nil, Usagef("%q looks like GROUP/VERSION/RESOURCE: write %s.%s.%s", name,
					parts[2], parts[1], parts[0])
			}
			if typeName, object, hasName := strings.Cut(name, "/"); hasName {
				return nil, Usagef("%q looks like TYPE/NAME: give the type and select the object by name, as in '%s --field-selector metadata.name=%s'", name, typeName, object)
			}
			if _, err := discovery.ParseName(name); err != nil {
				return nil, Usagef("%v", err)
			}
			if !slices.Contains(types, name) {
				types = append(types, name)
			}
		}
	}
	return types, nil
}

// throttleDetector records whether the last answer was 429. client-go retries such requests, and its timeout
// error does not mention the cause. It is safe for concurrent use.
type throttleDetector struct{ lastAnswerWas429 atomic.Bool }

func (t *throttleDetector) wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil {
			t.lastAnswerWas429.Store(response.StatusCode == http.StatusTooManyRequests)
		}
		return response, err
	})
}
