package web

import (
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
)

// Source is what the page shows. Nothing of it is changed, closed or started.
type Source struct {
	// Title says what it is a page of, such as the name of a context of a kubeconfig.
	Title string
	// Notice stands above all pages. It says what else there is to know of the source, such as that files are
	// shown, or of what time it is. Default: nothing.
	Notice string
	// Factory has the informers, which may come and go. It is required.
	Factory *dynamicinformer.Factory
	// Binding has the indexes and references of a config, for informers of Factory. Default: there are none
	// but the index by namespace, and references to owners.
	Binding *bind.Binding
	// Indexes and References return what the objects of a type have by another way than Binding: indexes that
	// the informer has under their names, and what the objects refer to. Default: nothing.
	Indexes    func(schema.GroupVersionResource) []*indexers.Index
	References func(schema.GroupVersionResource) []*indexers.Reference
	// Definition returns the CustomResourceDefinition of a type, for its kind and printer columns, or nil. It
	// is called for each look at a type, and must not wait for a server. Default: none is known. Tables of
	// types without a definition have name and age, and those of the usual built-in types some of their
	// fields.
	Definition func(schema.GroupVersionResource) *crd.Definition
}

// Options adjust a Handler. The zero value is usable.
type Options struct {
	// ShowSecrets has the values of Secrets shown. Default: they never leave the process.
	ShowSecrets bool
	// Visible returns the part of each type that the sender of a request may see. It is called for each
	// answer about one type, by several goroutines, and may wait for a server. A user who may not see all
	// objects of all types learns nothing about the others: no figures, no plans, and no references to or
	// from them. Default: every user sees everything.
	Visible func(r *http.Request, types []schema.GroupVersionResource) ([]Scope, error)
	// Known returns the same for all types at once, and does not wait for a server: Scope.Unknown marks the
	// types whose rights are not known yet. Streams call it every two seconds. Default: Visible.
	Known func(r *http.Request, types []schema.GroupVersionResource) []Scope
	// Authenticated says that the caller authenticates and authorizes each request itself. Then the page
	// needs no link and no cookie, so that several replicas can serve one browser. The page still refuses
	// requests from other sites, by the headers Host, Origin and Sec-Fetch-Site. Default: only browsers that
	// have opened a Login are served.
	Authenticated bool
	// User returns who sends a request. What may be under way at once is bounded for each user by itself.
	// Default: all are one.
	User func(*http.Request) string
	// Hosts are what the Host of a request may be, each a name with its port. Default: loopback addresses and
	// localhost, with any port.
	Hosts []string
}

func (s Source) check() error {
	if s.Factory == nil {
		return errors.New("web: Source.Factory is required")
	}
	return nil
}

func (s Source) definition(gvr schema.GroupVersionResource) *crd.Definition {
	if s.Definition == nil {
		return nil
	}
	return s.Definition(gvr)
}
