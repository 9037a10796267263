package web

import (
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/bind"
)

// Source is the content of the page. The page does not modify, start or close it.
type Source struct {
	// Title of the page, such as the name of a kubeconfig context. With Options.Clusters, it names the
	// cluster.
	Title string
	// Notice returns a text on top of all pages, for example an error of a config. Only users who see all
	// objects get it. Empty texts are not shown. Default: none.
	Notice func() string
	// Factory has the informers. Types can be added and removed. Required.
	Factory *dynamicinformer.Factory
	// Binding has the indexes and references of a config for the informers of Factory. Default: only the
	// namespace index and references to owners.
	Binding *bind.Binding
	// Definition returns the CustomResourceDefinition of a type, or nil. The page reads its kind and
	// printer columns. Definition is called often and must not block. Default: none. Without a CRD,
	// tables have name and age, and for common built-in types some fields.
	Definition func(schema.GroupVersionResource) *crd.Definition
}

// Options adjust a Handler. The zero value is usable.
type Options struct {
	// ShowSecrets shows the values of Secrets. Default: they never leave the process.
	ShowSecrets bool
	// Visible returns the part of each type that the user of a request may see. It is called for each
	// response about one type, by several goroutines, and may wait for a server. A user who may not see
	// all objects of all types gets no information about invisible objects: no figures, no plans, and no
	// references. Default: every user sees all objects.
	Visible func(r *http.Request, types []schema.GroupVersionResource) ([]Scope, error)
	// Known works like Visible for all types without waiting for a server. Scope.Unknown marks types with
	// unknown rights. Streams call Known every two seconds. Default: Visible.
	Known func(r *http.Request, types []schema.GroupVersionResource) []Scope
	// Authenticated means that the caller authenticates and authorizes each request. The page then needs
	// no link and no cookie, so several replicas can serve one browser. It rejects requests from other
	// sites by the headers Host, Origin and Sec-Fetch-Site. Default: only browsers that have opened a
	// Login link are served.
	Authenticated bool
	// User returns the user of a request. Each user has separate limits. Default: all requests share the
	// limits.
	User func(*http.Request) string
	// Clusters are further clusters that the page can show. Each cluster has its page at
	// /clusters/TITLE/. The page at / shows the source of NewHandler. The titles must differ. Default:
	// only one cluster.
	Clusters []Source
	// Hosts are the accepted Host headers, each with a port. Default: loopback addresses and localhost,
	// with any port.
	Hosts []string
}

func (s Source) validate() error {
	if s.Factory == nil {
		return errors.New("web: Source.Factory is required")
	}
	return nil
}

func (s Source) notice() string {
	if s.Notice == nil {
		return ""
	}
	return s.Notice()
}

func (s Source) definition(gvr schema.GroupVersionResource) *crd.Definition {
	if s.Definition == nil {
		return nil
	}
	return s.Definition(gvr)
}
