package shard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
)

// What Options leave out.
const (
	DefaultShards        = 64
	DefaultLeaseDuration = 40 * time.Second
	DefaultRenewDeadline = 30 * time.Second
	DefaultRetryPeriod   = 10 * time.Second
	DefaultDrainTimeout  = 30 * time.Second
)

// maxShards keeps what all replicas renew, and the names of the Leases, within bounds.
const maxShards = 1024

// Options say who shares the shards, and how. Config, Namespace and Name have no defaults.
type Options struct {
	// Config reaches the API server. Its QPS and Burst do not count, because a renewal that waits for its
	// turn is a shard lost; a RateLimiter in it does.
	Config *rest.Config
	// HTTPClient has the connections. Default: one made of Config.
	HTTPClient *http.Client

	// Namespace is where the Leases are. The service account needs get, list, watch, create, update and
	// delete there, of leases in coordination.k8s.io.
	Namespace string
	// Name tells those who share shards from others: all replicas of one operator have the same. The Leases
	// are called NAME-000, NAME-001 and so on, and NAME-member-ID. It is a DNS label of at most 40
	// characters.
	Name string
	// Identity is written into the Leases, for people to read. A random suffix is added, so that no two runs
	// of a program are taken for one. Default: the host's name.
	Identity string

	// Shards is how many there are, 1 to 1024; it is the same for all replicas. Default: 64.
	Shards int
	// Layout is what replicas have to agree on besides the number of shards for a shard to mean the same to
	// all, such as what is hashed: a label's value. Replicas that differ in either never hold shards at the
	// same time: those that come later wait until the others are gone.
	Layout string

	// LeaseDuration is how long the others wait, from the last renewal they saw, before they take a shard:
	// whole seconds. Default: 40 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long after the beginning of its last renewal a replica gives a shard up. What is
	// between it and LeaseDuration is there for work to end, and for clocks that do not run alike. Default:
	// 30 s.
	RenewDeadline time.Duration
	// RetryPeriod is how often a Lease is renewed. It is up to a fifth shorter, so that renewals spread.
	// Default: 10 s.
	RetryPeriod time.Duration
	// DrainTimeout is how long work may go on in a shard that is being given up: see Handler.Drain. Default:
	// 30 s.
	DrainTimeout time.Duration
}

// withDefaults fills in what has been left out.
func (o Options) withDefaults() Options {
	o.Shards = orDefault(o.Shards, DefaultShards)
	o.LeaseDuration = orDefault(o.LeaseDuration, DefaultLeaseDuration)
	o.RenewDeadline = orDefault(o.RenewDeadline, DefaultRenewDeadline)
	o.RetryPeriod = orDefault(o.RetryPeriod, DefaultRetryPeriod)
	o.DrainTimeout = orDefault(o.DrainTimeout, DefaultDrainTimeout)
	if o.Identity == "" {
		o.Identity, _ = os.Hostname() // the suffix alone is enough to tell replicas apart
	}
	return o
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// validate returns all that is wrong with options that have their defaults.
func (o Options) validate() error {
	var errs []error
	refuse := func(format string,
		args ...any) {
		errs = append(errs, fmt.Errorf("shard: Options."+format, args...))
	}
	if o.Config == nil {
		refuse("Config is missing")
	}
	if o.Namespace == "" {
		refuse("Namespace is missing: say where the Leases are, such as the namespace of the pods")
	}
	if problems := validation.IsDNS1123Label(o.Name); o.Name == "" || len(o.Name) > 40 || len(problems) > 0 {
		refuse("Name %q has to be a DNS label of at most 40 characters, the same for all replicas", o.Name)
	}
	if problems := validation.IsValidLabelValue(o.Layout); len(problems) > 0 {
		refuse("Layout %q has to be the value of a label: %s", o.Layout, strings.Join(problems, "; "))
	}
	if o.Shards < 1 || o.Shards > maxShards {
		refuse("Shards is %d, and has to be from 1 to %d", o.Shards, maxShards)
	}
	if o.LeaseDuration < time.Second || o.LeaseDuration%time.Second != 0 {
		refuse("LeaseDuration is %v, and has to be whole seconds, because that is what a Lease says",
			o.LeaseDuration)
	}
	if o.RenewDeadline >= o.LeaseDuration {
		refuse("RenewDeadline %v has to be less than LeaseDuration %v: work ends in between", o.RenewDeadline,
			o.LeaseDuration)
	}
	if o.RetryPeriod <= 0 || o.RenewDeadline <= time.
		Duration(leaderelection.JitterFactor*float64(o.RetryPeriod)) {
		refuse("RetryPeriod %v has to be less than RenewDeadline %v divided by %.1f, so that there is a second try", o.RetryPeriod, o.RenewDeadline, leaderelection.JitterFactor)
	}
	if o.DrainTimeout < 0 {
		refuse("DrainTimeout is %v, and cannot be negative", o.DrainTimeout)
	}
	return errors.Join(errs...)
}

// retryPeriod is how long one waits from one renewal, or one try, to the next.
func (o Options) retryPeriod() time.Duration { return o.RetryPeriod - rand.N(o.RetryPeriod/5+1) }
