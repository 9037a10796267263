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
	"github.com/crdcache/crdcache/web"
)

var errNoUser = errors.New("the request was not authenticated")

// visible returns what the user of a request may list of types. It asks the authorizer of all requests; see
// web.Options.
func (p *page) visible(r *http.Request, types []schema.GroupVersionResource) ([]web.Scope, error) {
	u, ok := apirequest.UserFrom(r.Context())
	if !ok {
		return nil, errNoUser
	}
	scopes := make([]web.Scope, len(types))
	for i, gvr := range types {
		var failed error
		scopes[i] = p.scope(r, gvr, func(namespace string) bool {
			if failed != nil {
				return false
			}
			may, err := mayList(r.Context(), p.authorizer, u, listRight{gvr, namespace})
			failed = err
			return may
		})
		if failed != nil {
			return nil, failed
		}
	}
	return scopes, nil
}

// firstLook is how long the first answer to a user waits for rights.
const firstLook = 300 * time.Millisecond

// known returns what is known of the same without waiting for the API server; see web.Options.
func (p *page) known(r *http.Request, types []schema.GroupVersionResource) []web.Scope {
	u, ok := apirequest.UserFrom(r.Context())
	scopes := make([]web.Scope, len(types))
	if !ok {
		return scopes // in which nothing is seen
	}
	ctx, cancel := context.WithTimeout(r.Context(), firstLook)
	defer cancel()
	for {
		unknown := false
		changed := p.rights.look(u, func(of *userRights) {
			for i, gvr := range types {
				scopes[i] = p.knownScope(r, gvr, of)
				unknown = unknown || scopes[i].Unknown
			}
		})
		if !unknown {
			return scopes
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return scopes
		}
	}
}

// knownScope is the scope of a type by the rights of a user that are known.
func (p *page) knownScope(r *http.Request, gvr schema.GroupVersionResource, of *userRights) web.Scope {
	all, missing := of.may(listRight{gvr, ""})
	var scope web.Scope
	if missing == nil {
		scope = p.scope(r, gvr, func(namespace string) bool {
			if namespace == "" {
				return all
			}
			may, err := of.may(listRight{gvr, namespace})
			missing = cmp.Or(missing, err)
			return may
		})
	}
	if missing == nil || len(scope.Namespaces) > 0 {
		return scope
	}
	scope = web.Scope{Unknown: true}
	if !errors.Is(missing, errUnasked) {
		scope.Reason = missing.Error()
	}
	return scope
}

// scope returns what a user may list of a type, in all namespaces ("") or in those that the request names.
func (p *page) scope(r *http.Request, gvr schema.GroupVersionResource,
	may func(namespace string) bool) web.Scope {
	if may("") {
		return web.Scope{All: true}
	}
	named, _ := r.Context().Value(namespacesKey{}).([]string)
	k, kept := p.cache.get(gvr)
	switch {
	case !kept || k.Scope != discovery.Namespaced:
		return web.Scope{Reason: "you may not list it"}
	case len(named) == 0:
		return web.Scope{Reason: "you may not list it in all namespaces; " + openPath +
			"?namespace=NAME shows what you may list in one"}
	}
	scope := web.Scope{Reason: "you may not list it in all namespaces, nor in " + strings.Join(named, ", ")}
	for _, namespace := range named {
		if may(namespace) {
			scope.Namespaces = append(scope.Namespaces, namespace)
		}
	}
	return scope
}

// mayList asks an authorizer for a right of a user.
func mayList(ctx context.Context, from authorizer.UnconditionalAuthorizer, u user.Info,
	right listRight) (bool, error) {
	gvr := right.gvr
	decision, _, err := from.Authorize(ctx, authorizer.AttributesRecord{
		User: u, Verb: "list", Namespace: right.namespace, APIGroup: gvr.Group, APIVersion: gvr.Version,
		Resource: gvr.Resource, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the right to list %s: %w", gvr.GroupResource(), err)
	}
	return false, nil
}
