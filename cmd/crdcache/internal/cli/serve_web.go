package cli

import (
	"context"
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/web"
)

// webOptions are the flags for the page.
type webOptions struct{ wanted, secrets bool }

// page makes the page of what is kept, and listens for browsers of this machine.
func (s *serving) page(ctx context.Context) (*web.Handler, net.Listener, error) {
	definitions := s.definitions(ctx)
	kept := map[schema.GroupVersionResource]discovery.Resource{} // no config means another one
	for _, r := range s.resources {
		kept[r.GVR] = r
	}
	page, err := web.NewHandler(web.Source{
		Title: s.Target.Config.Host, Factory: s.factory,
		Indexes:    func(gvr schema.GroupVersionResource) []*indexers.Index { return s.Config.Indexes(kept[gvr]) },
		References: func(gvr schema.GroupVersionResource) []*indexers.Reference { return s.Config.References(kept[gvr]) },
		Definition: func(gvr schema.GroupVersionResource) *crd.Definition { return definitions[gvr.GroupResource()] },
	}, web.Options{ShowSecrets: s.web.secrets})
	if err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		page.Close()
		return nil, nil, fmt.Errorf("--web: %w", err)
	}
	return page, listener, nil
}

// definitions are those of the types that are kept, as far as they may be read: the page can do without.
func (s *serving) definitions(ctx context.Context) map[schema.GroupResource]*crd.Definition {
	groups := map[string]bool{}
	for _, r := range s.resources {
		groups[r.GVR.Group] = true
	}
	byType := map[schema.GroupResource]*crd.Definition{}
	client, err := dynamicinformer.NewClient(s.Target.Config, nil)
	if err == nil {
		var all []*crd.Definition
		all, err = session.DefinitionsFromCluster(ctx, client, func(group string) bool { return groups[group] })
		for _, d := range all {
			byType[d.GroupResource()] = d
		}
	}
	if err != nil {
		fmt.Fprintf(s.ErrOut, "warning: the page has no printer columns: %v\n", err)
	}
	return byType
}
