package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/serving/web"
)

var errNoUser = errors.New("the request is not authenticated")

// visibleScopes returns the objects of the types that the user of a request may list. It implements Visible
// of web.Options.
func (p *page) visibleScopes(r *http.Request, types []schema.GroupVersionResource) ([]web.Scope, error) {
	u, ok := apirequest.UserFrom(r.Context())
	if !ok {
		return nil, errNoUser
	}
	scopes := make([]web.Scope, len(types))
	for i, gvr := range types {
		var firstErr error
		scopes[i] = p.scope(r, gvr, func(namespace string) bool {
			if firstErr != nil {
				return false
			}
			mayList, err := canList(r.Context(), p.authorizer, u, listAccess{gvr, namespace})
			firstErr = err
			return mayList
		})
		if firstErr != nil {
			return nil, firstErr
		}
	}
	return scopes, nil
}

const firstReviewTimeout = 300 * time.Millisecond

// knownScopes is visibleScopes from cached access reviews. It waits at most firstReviewTimeout. It implements
// Known of web.Options.
func (p *page) knownScopes(r *http.Request, types []schema.GroupVersionResource) []web.Scope {
	u, ok := apirequest.UserFrom(r.Context())
	scopes := make([]web.Scope, len(types))
	if !ok {
		return scopes // the zero value shows nothing
	}
	ctx, cancel := context.WithTimeout(r.Context(), firstReviewTimeout)
	defer cancel()
	for {
		hasUnknown := false
		changed := p.rights.withAnswers(u, func(answers *userAnswers) {
			for i, gvr := range types {
				scopes[i] = p.knownScope(r, gvr, answers)
				hasUnknown = hasUnknown || scopes[i].Unknown
			}
		})
		if !hasUnknown {
			return scopes
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return scopes
		}
	}
}

func (p *page) knownScope(r *http.Request, gvr schema.GroupVersionResource, answers *userAnswers) web.Scope {
	target := p.cache.target(gvr)
	hasObjects := target != nil && target.Informer.Snapshot().Len() > 0
	allowed, unknownErr := answers.canList(listAccess{gvr, ""}, hasObjects)
	var scope web.Scope
	if unknownErr == nil {
		scope = p.scope(r, gvr, func(namespace string) bool {
			if namespace == "" {
				return allowed
			}
			mayList, err := answers.canList(listAccess{gvr, namespace}, hasObjects)
			unknownErr = cmp.Or(unknownErr, err)
			return mayList
		})
	}
	if unknownErr == nil || len(scope.Namespaces) > 0 {
		return scope
	}
	scope = web.Scope{Unknown: true}
	if !errors.Is(unknownErr, errNotReviewedYet) {
		scope.Reason = unknownErr.Error()
	}
	return scope
}

// scope returns the scope of a type for a user, in all namespaces ("") or in the namespaces of the request.
func (p *page) scope(r *http.Request, gvr schema.GroupVersionResource,
	mayListIn func(namespace string) bool) web.Scope {
	if mayListIn("") {
		return web.Scope{All: true}
	}
	namespaces, _ := r.Context().Value(namespacesKey{}).([]string)
	target := p.cache.target(gvr)
	switch {
	case target == nil || target.Type.Scope != discovery.Namespaced:
		return web.Scope{Reason: "you are not allowed to list it"}
	case len(namespaces) == 0:
		return web.Scope{Reason: "you are not allowed to list it in all namespaces; " + openPath +
			"?namespace=NAME shows the objects of one"}
	}
	scope := web.Scope{Reason: "you are not allowed to list it in all namespaces, or in " + strings.Join(namespaces, ", ")}
	for _, namespace := range namespaces {
		if mayListIn(namespace) {
			scope.Namespaces = append(scope.Namespaces, namespace)
		}
	}
	return scope
}

func canList(ctx context.Context, reviewAuthorizer authorizer.UnconditionalAuthorizer, u user.Info,
	access listAccess) (bool, error) {
	gvr := access.gvr
	decision, _, err := reviewAuthorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: u, Verb: "list", Namespace: access.namespace, APIGroup: gvr.Group, APIVersion: gvr.Version,
		Resource: gvr.Resource, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("check the right to list %s: %w", gvr.GroupResource(), err)
	}
	return false, nil
}
