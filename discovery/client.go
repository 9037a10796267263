package discovery

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
	"weak"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/naming"
)

// Defaults of Options.
const (
	// DefaultTTL is the time for which a catalog in memory is used without contacting the server.
	DefaultTTL = 5 * time.Minute
	// DefaultTimeout is the timeout of each request.
	DefaultTimeout = 32 * time.Second
)

// roundInterval is the minimum time between two fetches of the same discovery document.
const roundInterval = time.Second

// Options adjusts a Client. The zero value is usable.
type Options struct {
	// TTL is the time for which fetched documents are used without contacting the server. A name that is not
	// found always causes another fetch. Default DefaultTTL.
	TTL time.Duration
	// Timeout is the timeout of each request. Default DefaultTimeout.
	Timeout time.Duration
	// HTTPClient reaches the server, so that connections can be shared with other clients. It takes
	// precedence over the transport settings of the REST config; its own timeout is ignored. Default: a
	// client made from the config.
	HTTPClient *http.Client

	// interval replaces roundInterval in tests.
	interval time.Duration
}

// Client resolves names with a cached catalog of an API server. It is safe for concurrent use and needs no
// closing: it has no goroutines between calls.
type Client struct {
	options      Options
	core, groups *documentCache

	mu struct {
		sync.Mutex
		catalog *Catalog
		inputs  catalogInputs
	}
}

// catalogInputs identifies the contents a catalog was built from. core may be nil.
type catalogInputs struct{ core, groups *documentGroups }

func (i catalogInputs) catalog() *Catalog {
	key := contentKey{weak.Make(i.core), weak.Make(i.groups)}
	content, _ := sharedContents.Get(key, func() (*catalogContent, error) { // it does not fail
		documents := [][]group{i.groups.Groups}
		if i.core != nil {
			documents = [][]group{i.core.Groups, i.groups.Groups}
		}
		return newCatalog(documents...).catalogContent, nil
	})
	return &Catalog{catalogContent: content}
}

// NewClient returns a Client for the server of config. It does not contact the server.
func NewClient(config *rest.Config, options Options) (*Client, error) {
	if config == nil {
		return nil, errors.New("discovery client: the REST config is nil")
	}
	options.TTL = cmp.Or(max(options.TTL, 0), DefaultTTL)
	options.Timeout = cmp.Or(max(options.Timeout, 0), DefaultTimeout)
	options.interval = cmp.Or(max(options.interval, 0), roundInterval)
	t, err := newTransport(config, options)
	if err != nil {
		return nil, err
	}
	return &Client{options: options, core: newDocumentCache(t, coreEndpoint, options),
		groups: newDocumentCache(t, groupsEndpoint, options)}, nil
}

func newDocumentCache(t *transport, e endpoint, options Options) *documentCache {
	return &documentCache{
		interval: options.interval,
		fetch: func(ctx context.Context, earlier *cachedDocument) (*cachedDocument, error) {
			return e.fetch(ctx, t, earlier)
		},
	}
}

// needsCoreDocument reports whether resolving n requires the core document. Names with a group are not in the
// core group (its name is empty), so one request is enough for them.
func needsCoreDocument(n Name) bool {
	return slices.ContainsFunc(n.Interpretations, func(i Interpretation) bool {
		return i.Group == "" || naming.Match(i.Group, "")
	})
}

// Catalog returns the catalog of the server. It fetches documents that are missing or older than the TTL.
// If that fails, it returns the last catalog, if there is one, with RefreshErr set.
func (c *Client) Catalog(ctx context.Context) (*Catalog, error) { return c.cachedOrLatest(ctx, true) }

// Refresh returns a catalog fetched after the call began. Concurrent calls share one fetch, and fetches are
// at least a second apart, so the call may wait that long. Servers that support ETags do not send unchanged
// documents again.
func (c *Client) Refresh(ctx context.Context) (*Catalog, error) {
	return c.fetchSince(ctx, true, time.Now())
}

// Resolve resolves name like Catalog.Resolve, and tries again after a refresh if the name is not found. With
// an empty cache, a name with a group costs one request, other names cost two concurrent ones.
//
// Errors are *NameError, *NoMatchError, or the errors of requests.
func (c *Client) Resolve(ctx context.Context, name string) (Resolution, error) {
	n, err := ParseName(name)
	if err != nil {
		return Resolution{}, err
	}
	startedAt := time.Now()
	withCore := needsCoreDocument(n)
	catalog, err := c.cachedOrLatest(ctx, withCore)
	if err != nil {
		return Resolution{}, err
	}
	res, err := catalog.ResolveName(n)
	var noMatch *NoMatchError
	if !errors.As(err, &noMatch) {
		return res, err
	}
	// If this call has already fetched the catalog, this does not send another request.
	catalog, err = c.fetchSince(ctx, withCore, startedAt)
	if err != nil {
		noMatch.RefreshErr = err
		return Resolution{}, noMatch
	}
	return catalog.ResolveName(n)
}

// cachedOrLatest returns a catalog within its TTL if possible, and otherwise the last one.
func (c *Client) cachedOrLatest(ctx context.Context, withCore bool) (*Catalog, error) {
	catalog, err := c.fetchSince(ctx, withCore, time.Now().Add(-c.options.TTL))
	if err == nil {
		return catalog, nil
	}
	core, groups := c.core.latest(), c.groups.latest()
	if ctx.Err() != nil || withCore && core == nil || groups == nil {
		return nil, err
	}
	stale := *c.assemble(core, groups)
	stale.refreshErr = err
	return &stale, nil
}

// fetchSince returns a catalog of documents fetched at or after since. Without withCore the catalog
// includes a cached core document, if any.
func (c *Client) fetchSince(ctx context.Context, withCore bool, since time.Time) (*Catalog, error) {
	core := c.core.latest()
	var coreErr error
	var wg sync.WaitGroup
	if withCore {
		// Concurrent with the other fetch. The goroutine ends with its fetch or ctx.
		wg.Go(func() { core, coreErr = c.core.fetchedSince(ctx, since) })
	}
	groups, err := c.groups.fetchedSince(ctx, since)
	wg.Wait()
	if err := errors.Join(coreErr, err); err != nil {
		return nil, err
	}
	return c.assemble(core, groups), nil
}

// assemble builds the catalog of two snapshots; core can be nil. It reuses the last catalog if the contents
// are the same, because the server answered "not modified".
func (c *Client) assemble(core, groups *fetchedDocument) *Catalog {
	inputs := catalogInputs{groups: groups.documentGroups}
	fetchedAt := groups.started
	if core != nil {
		inputs.core = core.documentGroups
		if core.started.Before(fetchedAt) {
			fetchedAt = core.started
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.catalog == nil || c.mu.inputs != inputs {
		c.mu.catalog, c.mu.inputs = inputs.catalog(), inputs
	}
	if !c.mu.catalog.fetchedAt.Equal(fetchedAt) {
		updated := *c.mu.catalog
		updated.fetchedAt = fetchedAt
		c.mu.catalog = &updated
	}
	return c.mu.catalog
}
