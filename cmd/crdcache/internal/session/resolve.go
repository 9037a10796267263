package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/naming"
)

// Catalog discovers the server's types with one request. Errors have a remedy.
func (t *Target) Catalog(ctx context.Context) (*discovery.Catalog, error) {
	client, err := t.discoveryClient()
	if err != nil {
		return nil, err
	}
	var catalog *discovery.Catalog
	err = t.retryThrottled(ctx, func() (err error) {
		catalog, err = client.Catalog(ctx)
		return err
	})
	if err != nil {
		return nil, t.Explain(ctx, err)
	}
	return catalog, nil
}

func (t *Target) discoveryClient() (*discovery.Client, error) {
	return discovery.NewClient(t.Rest, discovery.Options{Timeout: t.Rest.Timeout})
}

// Resolve resolves type names to distinct types that support the verbs. It returns them together with the
// joined errors of names without such a type, and warns about ambiguous names. A name that can match types of
// a group that could not be discovered adds an *UnknownGroupsError.
func (t *Target) Resolve(ctx context.Context, names []string, verbs ...string) ([]discovery.Resource, error) {
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
		lookup = func(_ context.Context, name string) (discovery.Resolution, error) {
			return catalog.Resolve(name)
		}
	}
	var resources []discovery.Resource
	var errs []error
	var types []schema.GroupResource
	seenTypes := map[schema.GroupVersionResource]bool{}
	for _, name := range names {
		var resolution discovery.Resolution
		err := t.retryThrottled(ctx, func() (err error) {
			resolution, err = lookup(ctx, name)
			return err
		})
		if noMatch, ok := errors.AsType[*discovery.NoMatchError](err); ok {
			if len(t.IncompleteTypes(name)) == 0 {
				errs = append(errs, t.explainNoMatch(ctx, noMatch, len(resources) > 0))
			}
			continue
		}
		if err != nil {
			errs = append(errs, t.Explain(ctx, err))
			continue
		}
		t.warnAmbiguous(name, resolution)
		supported, err := withVerbs(name, resolution, verbs)
		errs = append(errs, UnknownGroups(name, resolution.FailedGroupVersions), err)
		for _, r := range supported {
			types = append(types, r.GVR.GroupResource())
			t.RecordUse(len(verbs) > 0, r.GVR.GroupResource())
			if !seenTypes[r.GVR] {
				seenTypes[r.GVR] = true
				resources = append(resources, r)
			}
		}
	}
	// An unreadable file can contain the requested type.
	return resources, errors.Join(append(errs, t.FilesErr(names, types...))...)
}

// withVerbs returns the types of a resolution that support the verbs, also those that cannot be watched. It
// returns an error if there are none.
func withVerbs(name string, resolution discovery.Resolution, verbs []string) ([]discovery.Resource, error) {
	matched := slices.Clone(resolution.Resources)
	for _, skipped := range resolution.Skipped {
		if skipped.Reason != discovery.SkipSubresource {
			matched = append(matched, skipped.Resource)
		}
	}
	supported := slices.DeleteFunc(slices.Clone(matched),
		func(r discovery.Resource) bool { return !r.HasVerbs(verbs...) })
	switch {
	case len(supported) > 0 || len(matched) == 0:
		return supported, nil
	case len(matched) == 1:
		return nil, fmt.Errorf("%s %s", matched[0], matched[0].MissingVerbs(verbs...))
	}
	return nil, fmt.Errorf("%s matches %d types, and none of them supports the verb %s", name, len(matched),
		strings.Join(verbs, " and "))
}

// explainNoMatch adds a remedy if there are no suggestions. With followsType, the user may have meant the
// name of an object, as in kubectl.
func (t *Target) explainNoMatch(ctx context.Context, noMatch *discovery.NoMatchError,
	followsType bool) error {
	canBeName := followsType && !t.CommaList
	for _, r := range t.Reasons(crd.GVR.GroupResource()) {
		if _, isBuiltin := naming.FindBuiltinByName(noMatch.Name); r.Type != "" && !isBuiltin {
			return fmt.Errorf("%w; %w", noMatch, &UncollectedError{r.Text})
		}
	}
	if !canBeName {
		if err := t.explainUnserved(ctx, noMatch); err != error(noMatch) {
			return err
		}
	}
	switch {
	case t.ReadsFiles() && len(t.SnapshotOrigin().UnknownGroups) > 0:
		return fmt.Errorf("%w; it may be one of the unknown types: %s", noMatch, t.SnapshotOrigin().UnknownGroups)
	case len(noMatch.Suggestions) > 0:
		return noMatch
	case canBeName && len(validation.IsDNS1123Subdomain(noMatch.Name)) == 0:
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
	var urlErr *url.Error
	var statusErr *apierrors.StatusError
	switch {
	case errors.As(err, new(*discovery.NoMatchError)), errors.Is(err, context.Canceled):
		return err
	case apierrors.IsTooManyRequests(err), errors.Is(err, context.DeadlineExceeded) &&
		t.responses.lastAnswerWas429.Load():
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
	statusErr, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		statusErr = apierrors.NewTooManyRequestsError("the server asks to try again later")
	}
	cause := "it or a proxy before it is overloaded, or limits your requests"
	if t.responses.hasPriorityHeaders.Load() {
		cause = "it is overloaded, or limits your requests by API priority and fairness"
	}
	throttledErr := fmt.Errorf("the API server at %s answers TooManyRequests: %s; "+
		"try again later, or wait longer with --timeout: %w", t.Rest.Host, cause, statusErr)
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

// warnAmbiguous warns about alternatives.
func (t *Target) warnAmbiguous(name string, r discovery.Resolution) {
	if len(r.Alternatives) > 0 {
		names := naming.Texts(r.Alternatives, discovery.Resource.String)
		t.Warnf("%s is read as %s; it could also be %s", name, r.Resources[0], abbreviate(names, maxAlternatives))
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
			types = naming.AppendMissing(types, name)
		}
	}
	return types, nil
}
