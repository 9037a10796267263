package live

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/readapi"
)

// Sharding says that the informers of a server have a part of the objects of each type, and that other servers have the rest.
type Sharding struct {
	// Shard is what the informers follow: dynamicinformer.NewFixedShard of the part Own.
	Shard *dynamicinformer.Shard
	// Parts are what the servers have, one each. Together they are the hash space, without overlaps.
	Parts []dynamicinformer.HashRange
	// Own is which of them is the Shard.
	Own int
	// Ask sends a request to the server of another part, for the client whose request the context is of: that server has to
	// answer as it would answer the client. Of the URL path and query count. The error says why there is no answer.
	Ask func(part int, r *http.Request) (*http.Response, error)
}

// Headers about shards.
const (
	// ShardHeader is the header of answers that says which part of the objects has been looked at: a shard selector. An answer
	// without it is about all.
	ShardHeader = "Crdcache-Shard"
	// partHeader marks a request of another server. It is answered from the cache or refused, and never asks others.
	partHeader = "Crdcache-Part"
)

// shard returns what the informers follow; nil: everything.
func (s *Sharding) shard() *dynamicinformer.Shard {
	if s == nil {
		return nil
	}
	return s.Shard
}

// validate returns what is wrong.
func (s *Sharding) validate() error {
	if s == nil {
		return nil
	}
	if s.Shard == nil || s.Ask == nil || s.Own < 0 || s.Own >= len(s.Parts) {
		return errors.New("live: Sharding needs a Shard, Ask, and Parts of which Own is one")
	}
	if !slices.Equal(s.Shard.Ranges(), s.Parts[s.Own:s.Own+1]) {
		return fmt.Errorf("live: the shard is %v, and the part %d is %v", s.Shard.Ranges(), s.Own, s.Parts[s.Own])
	}
	space := requests.NewRanges(requests.HashRange{})
	for i := range s.Parts {
		part := s.part(i)
		if len(space.And(part)) != 1 || !slices.Equal(space.And(part), part) {
			return fmt.Errorf("live: the part %d of the hash space, %v, is empty or overlaps with others", i, s.Parts[i])
		}
		space = space.Minus(part)
	}
	if len(space) > 0 {
		return fmt.Errorf("live: nobody has the part %v of the hash space", space)
	}
	return nil
}

// part returns a part as ranges.
func (s *Sharding) part(i int) requests.Ranges {
	return requests.NewRanges(requests.HashRange(s.Parts[i]))
}

// ownSelector selects what the server has.
func (s *Sharding) ownSelector() string { return s.part(s.Own).Selector(s.Shard.Key()) }

// share is what a request is about, and of whom.
type share struct {
	// parts are those that may have something of it.
	parts []int
	// ranges are what is selected, as far as it is by the key that objects are shared by; nil: everything is. text is how the
	// client has said it.
	ranges requests.Ranges
	text   string
	// placed says that one part has everything in the namespace that the request is about, whatever is selected of that.
	placed bool
}

// shareOf finds out who has what a request is about. The error is for the client.
func (c *collection) shareOf(namespace string, query url.Values) (share, error) {
	s, key := c.server.options.Sharding, c.shard.Key()
	out := share{text: query.Get("shardSelector"), placed: key == dynamicinformer.ShardByNamespace && (namespace != "" || !c.typ.Namespaced)}
	wanted := requests.NewRanges(requests.HashRange{})
	if out.text != "" {
		selector, err := readapi.ParseShardSelector(out.text)
		if err != nil {
			return out, apierrors.NewBadRequest(fmt.Sprintf("invalid shard selector: %v", err))
		}
		by, ranges := rangesOf(selector)
		if by != key && !out.placed {
			return out, apierrors.NewBadRequest(fmt.Sprintf("invalid shard selector: the objects are shared among servers by object.%s, and are not selected by object.%s", key, by))
		}
		out.ranges = ranges
	}
	if out.placed {
		hash := dynamicinformer.ShardHash(namespace)
		wanted = requests.NewRanges(requests.HashRange{Start: hash, End: hash + 1})
	} else if out.ranges != nil {
		wanted = out.ranges
	}
	for i := range s.Parts {
		if len(wanted.And(s.part(i))) > 0 {
			out.parts = append(out.parts, i)
		}
	}
	return out, nil
}

// rangesOf returns what a selector selects, and by what.
func rangesOf(s sharding.Selector) (dynamicinformer.ShardKey, requests.Ranges) {
	var ranges []requests.HashRange
	var key dynamicinformer.ShardKey
	for _, r := range s.Requirements() {
		var one requests.HashRange
		key = dynamicinformer.ShardKey(r.Key[len("object."):])
		_, _ = fmt.Sscanf(r.Start+" "+r.End, "0x%x 0x%x", &one.Start, &one.End) // an end that is too large is that of the space
		ranges = append(ranges, one)
	}
	return key, requests.NewRanges(ranges...)
}

// Within implements readapi.Part.
func (c *collection) Within(selector sharding.Selector) bool {
	if c.shard == nil {
		return false
	}
	key, ranges := rangesOf(selector)
	return key == c.shard.Key() && len(c.server.options.Sharding.part(c.server.options.Sharding.Own).Minus(ranges)) == 0
}

// serveShare answers a request for objects that are shared among servers, unless the cache of this one is all it takes.
// It reports whether it has answered.
func (s *Server) serveShare(w http.ResponseWriter, r *http.Request, asked readapi.Request, c *collection) bool {
	of, err := c.shareOf(asked.Namespace, r.URL.Query())
	own := s.options.Sharding.Own
	switch {
	case err != nil:
	case len(of.parts) == 1 && of.parts[0] == own:
		w.Header().Set(ShardHeader, s.options.Sharding.ownSelector())
		return false
	case r.Header.Get(partHeader) != "":
		err = errAnotherPart(s.options.Sharding)
	case len(of.parts) == 1:
		s.forward(w, r, of.parts[0])
		return true
	case asked.Verb != "watch" && asked.Verb != "watch-list" && !mergeable(r):
		s.upstream.proxy.ServeHTTP(w, r)
		return true
	case asked.Verb == "get":
		err = s.getFromParts(w, r, of)
	case asked.Verb == "list":
		err = s.listParts(w, r, asked, of)
	case of.text != "":
		err = apierrors.NewBadRequest("shardSelector: several servers have what is selected, and a watch is of one: watch what each of them has")
	case asked.Verb == "watch-list":
		err = errNoWatchList()
	default:
		s.upstream.proxy.ServeHTTP(w, r) // which alone knows the order of all changes
		return true
	}
	if err != nil && r.Context().Err() == nil {
		w.Header().Set(ServedHeader, servedByCache)
		readapi.WriteError(w, r, err)
	}
	return true
}

// shareQuery answers a query of objects that are shared among servers, unless the cache of this one is all it takes. It reports
// whether it has answered. A query is of one part: counts, orders and pages of several have no common version.
func (s *Server) shareQuery(w http.ResponseWriter, r *http.Request, asked readapi.Request, c *collection) (bool, error) {
	of, err := c.shareOf(asked.Namespace, r.URL.Query())
	if err != nil {
		return false, err
	}
	if len(of.parts) > 1 {
		return false, apierrors.NewBadRequest("the objects are shared among servers, and a query is of one of them: give as shardSelector what it has, such as " + s.options.Sharding.ownSelector())
	}
	part := of.parts[0]
	watches := asked.Verb == "watch" || asked.Verb == "watch-list"
	if of.text != "" && !watches && (of.placed || len(s.options.Sharding.part(part).Minus(of.ranges)) > 0) {
		return false, apierrors.NewBadRequest("shardSelector: a query is of all that a server has: " + s.options.Sharding.part(part).Selector(c.shard.Key()))
	}
	switch {
	case part == s.options.Sharding.Own:
		w.Header().Set(ShardHeader, s.options.Sharding.ownSelector())
		return false, nil
	case r.Header.Get(partHeader) != "":
		return false, errAnotherPart(s.options.Sharding)
	}
	s.forward(w, r, part)
	return true, nil
}

// retrySeconds is after how long what is refused now may be answered.
const retrySeconds = 1

// errUnavailable is for what cannot be answered in full now.
func errUnavailable(format string, args ...any) *apierrors.StatusError {
	err := apierrors.NewServiceUnavailable(fmt.Sprintf(format, args...))
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retrySeconds}
	return err
}

// errAnotherPart is for another server that takes this one for that of another part, as when their number changes.
func errAnotherPart(s *Sharding) error {
	return errUnavailable("this server has %s, and nothing else", s.ownSelector())
}

// errNoWatchList is what kube-apiservers without watch-lists say. Clients list, and watch from there.
func errNoWatchList() error {
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", field.ErrorList{field.Forbidden(
		field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
	)})
}
