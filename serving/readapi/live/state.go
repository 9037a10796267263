package live

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/serving/readapi"
)

// IsWatching reports whether a cache is synced and its watch is running. After the watch has ended, the cache
// can lack recent writes. Status sets Reason or Stale as soon as the watch ends, and State later.
func IsWatching(s status.Status) bool {
	return s.State == status.Synced && !s.Stale && s.Reason == ""
}

// State returns whether the cache of a type is current and served, and its state with the reason why it is
// not.
func (s *Server) State(gr schema.GroupResource) (isLive bool, text string) {
	served := s.cacheOf(gr)
	if served == nil {
		return false, "not cached"
	}
	current := served.informer.Status()
	switch isServed := served.collection() != nil; {
	case current.Reason != "":
		return false, fmt.Sprintf("%s (%s)", current.State, current.Reason)
	case current.Stale:
		return false, fmt.Sprintf("%s (no contact since %s)", current.State,
			current.LastContact.Format(time.TimeOnly))
	case IsWatching(current) && !isServed:
		return false, fmt.Sprintf("%s (not used: discovery or its CustomResourceDefinition is not known yet)",
			current.State)
	default:
		return IsWatching(current) && isServed, string(current.State)
	}
}

// CheckRequest returns an error unless the cache can answer a request with current and complete objects.
func (s *Server) CheckRequest(request readapi.Request) error {
	served := s.cacheOf(request.GVR.GroupResource())
	if served == nil || served.gvr != request.GVR {
		return errors.New("it is not cached")
	}
	isLive, text := s.State(request.GVR.GroupResource())
	switch history := served.informer.History(); {
	case !isLive:
		return fmt.Errorf("the cache may be out of date: %s", text)
	case history.Namespace != "" && history.Namespace != request.Namespace:
		return fmt.Errorf("only the namespace %s is cached", history.Namespace)
	case history.Pruned:
		return errors.New("keep or prune drops fields of its objects")
	}
	return nil
}
