package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/readapi/live"
	"github.com/crdcache/crdcache/shard"
)

// ShardingConfig is the part of a Config about replicas of a StatefulSet that share the objects: each keeps a part, and asks the
// others for theirs. All replicas have the same.
type ShardingConfig struct {
	// Key is what tells who has an object: metadata.uid or metadata.namespace.
	Key dynamicinformer.ShardKey `json:"key"`
	// Replicas is how many there are.
	Replicas int `json:"replicas"`
	// Ordinal is the number of this replica, from 0. Default: that at the end of the host name, as StatefulSets have it.
	Ordinal *int `json:"ordinal,omitempty"`
	// Peers are the addresses of all replicas in order, or one with {ordinal} in it, such as
	// https://crdcached-{ordinal}.crdcached-peers.crdcached.svc:8443.
	Peers []string `json:"peers"`
	// ServerName is what the certificates of the replicas are for. Default: the host of each address.
	ServerName string `json:"serverName,omitempty"`
	// CAFile has the authorities that sign the certificates with which replicas serve, and those with which they ask each other
	// on behalf of users. They must sign for nobody else who says to be ClientName.
	CAFile string `json:"caFile"`
	// CertFile and KeyFile are the certificate with which the replica asks others, and its key. They are read anew when they
	// change.
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// ClientName is the common name in that certificate. Default: crdcached-peer.
	ClientName string `json:"clientName,omitempty"`
}

const (
	defaultClientName = "crdcached-peer"
	ordinalPattern    = "{ordinal}"
)

// validate returns everything that is wrong.
func (c *ShardingConfig) validate() error {
	if c == nil {
		return nil
	}
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf("sharding."+format, args...)) }
	if c.Key != dynamicinformer.ShardByUID && c.Key != dynamicinformer.ShardByNamespace {
		wrong("key: %q is not %s or %s", c.Key, dynamicinformer.ShardByUID, dynamicinformer.ShardByNamespace)
	}
	if c.Replicas < 1 {
		wrong("replicas: %d is less than 1", c.Replicas)
	} else if _, err := c.ordinal(); err != nil {
		problems = append(problems, err)
	}
	if len(c.Peers) != max(c.Replicas, 1) && (len(c.Peers) != 1 || !strings.Contains(c.Peers[0], ordinalPattern)) {
		wrong("peers: there are %d addresses of %d replicas; give all, or one with %s in it", len(c.Peers), c.Replicas, ordinalPattern)
	}
	for i := range c.Peers {
		if base, err := c.peer(i); err != nil || base.Scheme != "https" || base.Host == "" || base.Path != "" {
			wrong("peers: %q is not of the form https://HOST:PORT", c.Peers[i])
		}
	}
	for name, file := range map[string]string{"caFile": c.CAFile, "certFile": c.CertFile, "keyFile": c.KeyFile} {
		if file == "" {
			wrong("%s: there is none", name)
		}
	}
	return errors.Join(problems...)
}

// ordinal returns the number of this replica.
func (c *ShardingConfig) ordinal() (int, error) {
	ordinal, from := 0, "ordinal"
	if c.Ordinal != nil {
		ordinal = *c.Ordinal
	} else {
		host, err := os.Hostname()
		if err == nil {
			ordinal, err = shard.Ordinal(host)
		}
		if err != nil {
			return 0, fmt.Errorf("sharding.ordinal: there is none, and %w", err)
		}
		from = "ordinal of " + host
	}
	if ordinal < 0 || ordinal >= c.Replicas {
		return 0, fmt.Errorf("sharding.%s: %d is not below the number of replicas, %d", from, ordinal, c.Replicas)
	}
	return ordinal, nil
}

// peer returns the address of a replica.
func (c *ShardingConfig) peer(ordinal int) (*url.URL, error) {
	at := c.Peers[min(ordinal, len(c.Peers)-1)]
	return url.Parse(strings.ReplaceAll(at, ordinalPattern, strconv.Itoa(ordinal)))
}

// live returns what the caches and their server have to know; nil where objects are not shared.
func (c *ShardingConfig) live() (*live.Sharding, error) {
	if c == nil {
		return nil, nil
	}
	own, err := c.ordinal()
	if err != nil {
		return nil, err
	}
	peers, err := c.connect()
	if err != nil {
		return nil, fmt.Errorf("sharding: %w", err)
	}
	parts := dynamicinformer.SplitHashSpace(c.Replicas)
	return &live.Sharding{Shard: dynamicinformer.NewFixedShard(c.Key, parts[own]), Parts: parts, Own: own, Ask: peers.ask}, nil
}

// peers are the other replicas.
type peers struct {
	transport http.RoundTripper
	bases     []*url.URL
}

func (c *ShardingConfig) connect() (*peers, error) {
	p := &peers{}
	for i := range c.Replicas {
		base, err := c.peer(i)
		if err != nil {
			return nil, err
		}
		p.bases = append(p.bases, base)
	}
	var err error
	p.transport, err = rest.TransportFor(&rest.Config{
		TLSClientConfig:    rest.TLSClientConfig{ServerName: c.ServerName, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile},
		DisableCompression: true, UserAgent: "crdcached-peer",
	})
	return p, err
}

// ask sends a request to a replica for the user of the request that its context is of. The other replica believes the certificate of
// this one who the user is, and asks for the user's rights by itself.
func (p *peers) ask(part int, r *http.Request) (*http.Response, error) {
	user, ok := apirequest.UserFrom(r.Context())
	if !ok {
		return nil, errors.New("it is not known who asks")
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = p.bases[part].Scheme, p.bases[part].Host, ""
	transport.SetAuthProxyHeaders(r, user.GetName(), user.GetUID(), user.GetGroups(), user.GetExtra())
	return p.transport.RoundTrip(r)
}

// trustPeers has the certificates of other replicas believed who a user is, and no others.
func (o *Options) trustPeers() {
	c, trusted := o.Config.Sharding, &o.Authentication.RequestHeader
	if c == nil || trusted.ClientCAFile != "" {
		return
	}
	trusted.ClientCAFile, trusted.AllowedNames = c.CAFile, []string{cmp.Or(c.ClientName, defaultClientName)}
	trusted.UIDHeaders = []string{"X-Remote-Uid"}
}
