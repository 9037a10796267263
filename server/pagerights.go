package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"golang.org/x/sync/errgroup"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/web"
)

// visible says what a user may list of types; see web.Options. What the authorizer has been told it remembers for a while.
func (p *page) visible(r *http.Request, types []schema.GroupVersionResource) ([]web.Scope, error) {
	scopes := make([]web.Scope, len(types))
	var group errgroup.Group
	group.SetLimit(maxReviews)
	for i, gvr := range types {
		group.Go(func() (err error) {
			scopes[i], err = p.scope(r.Context(), gvr)
			return err
		})
	}
	return scopes, group.Wait()
}

// maxReviews is how many rights are asked for at once for one request.
const maxReviews = 16

// scope says what a user may list of a type.
func (p *page) scope(ctx context.Context, gvr schema.GroupVersionResource) (web.Scope, error) {
	if all, err := p.mayList(ctx, gvr, ""); all || err != nil {
		return web.Scope{All: all}, err
	}
	named, _ := ctx.Value(namespacesKey{}).([]string)
	k, kept := p.cache.get(gvr)
	switch {
	case !kept || k.Scope != discovery.Namespaced:
		return web.Scope{Reason: "you may not list it"}, nil
	case len(named) == 0:
		return web.Scope{Reason: "you may not list it in all namespaces; " + openPath + "?namespace=NAME shows what you may list in one"}, nil
	}
	scope := web.Scope{Reason: "you may not list it in all namespaces, nor in " + strings.Join(named, ", ")}
	for _, namespace := range named {
		may, err := p.mayList(ctx, gvr, namespace)
		if err != nil {
			return web.Scope{}, err
		}
		if may {
			scope.Namespaces = append(scope.Namespaces, namespace)
		}
	}
	return scope, nil
}

// mayList asks whether a user may list a type, in a namespace or in all ("").
func (p *page) mayList(ctx context.Context, gvr schema.GroupVersionResource, namespace string) (bool, error) {
	user, ok := apirequest.UserFrom(ctx)
	if !ok {
		return false, errors.New("the request was not authenticated")
	}
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: "list", Namespace: namespace, APIGroup: gvr.Group, APIVersion: gvr.Version, Resource: gvr.Resource, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the right to list %s: %w", gvr.GroupResource(), err)
	}
	return false, nil
}
