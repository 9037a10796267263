package shard

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// The defaults of the fields of Options with these names.
const (
	DefaultShards        = 64
	DefaultLeaseDuration = 40 * time.Second
	DefaultRenewDeadline = 30 * time.Second
	DefaultRetryPeriod   = 10 * time.Second
	DefaultDrainTimeout  = 30 * time.Second
)

// maxShards limits the rate of renewals, and the length of Lease names.
const maxShards = 1024

// Options configure a Member. Config, Namespace and Name are required.
type Options struct {
	// Config is the configuration of the client. Its QPS and Burst are ignored, because a renewal that waits
	// for them would lose the shard. Its RateLimiter is used.
	Config *rest.Config

	// Namespace is the namespace of the Leases. The service account needs get, list, watch, create, update
	// and delete of leases in coordination.k8s.io there.
	Namespace string
	// Name is the name of the group. All replicas of one operator have the same. The Leases are NAME-000,
	// NAME-001 and so on, and NAME-member-ID. It must be a DNS label of at most 40 characters.
	Name string
	// Identity is the readable part of the holder identity in Leases. A random suffix makes it unique.
	// Default: the host name.
	Identity string

	// Shards is the number of shards, 1 to 1024, and the same for all replicas. Default: 64.
	Shards int
	// Layout is a label value that identifies the meaning of shards in addition to their number, such as the
	// hashed field. Replicas with different layouts or numbers of shards never hold shards at the same time:
	// a new replica waits until all others have ended.
	Layout string

	// LeaseDuration is the time without renewals after which other replicas take a shard, in whole seconds.
	LeaseDuration time.Duration
	// RenewDeadline is the time since the start of the last successful renewal after which a replica gives up
	// a shard. The rest of LeaseDuration is for work to end, and for clocks with different speeds.
	RenewDeadline time.Duration
	// RetryPeriod is the period of renewals. It is shortened by up to a fifth at random.
	RetryPeriod time.Duration
	// DrainTimeout is the time for work to end in a shard that is given up: see Handler.Drain. Default: 30 s.
	DrainTimeout time.Duration
}

func (o Options) withDefaults() Options {
	o.Shards = cmp.Or(o.Shards, DefaultShards)
	o.LeaseDuration = cmp.Or(o.LeaseDuration, DefaultLeaseDuration)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, DefaultRenewDeadline)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, DefaultRetryPeriod)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, DefaultDrainTimeout)
	if o.Identity == "" {
		o.Identity, _ = os.Hostname() // the suffix alone is unique
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	refuse := func(invalid bool, format string, args ...any) {
		if invalid {
			errs = append(errs, fmt.Errorf("shard: Options."+format, args...))
		}
	}
	refuse(o.Config == nil, "Config is missing")
	refuse(o.Namespace == "", "Namespace is missing: set it to the namespace of the Leases, such as that of the pods")
	refuse(o.Name == "" || len(o.Name) > 40 || len(validation.IsDNS1123Label(o.Name)) > 0,
		"Name %q must be a DNS label of at most 40 characters, the same for all replicas", o.Name)
	problems := validation.IsValidLabelValue(o.Layout)
	refuse(len(problems) > 0, "Layout %q must be a label value: %s", o.Layout, strings.Join(problems, "; "))
	refuse(o.Shards < 1 || o.Shards > maxShards, "Shards is %d, must be from 1 to %d", o.Shards, maxShards)
	refuse(o.LeaseDuration < time.Second || o.LeaseDuration%time.Second != 0,
		"LeaseDuration is %v, must be whole seconds, as in a Lease", o.LeaseDuration)
	refuse(o.RenewDeadline >= o.LeaseDuration,
		"RenewDeadline %v must be less than LeaseDuration %v: work ends in between", o.RenewDeadline, o.LeaseDuration)
	refuse(o.RetryPeriod <= 0 || o.RenewDeadline <= o.RetryPeriod*6/5,
		"RetryPeriod %v must be less than RenewDeadline %v divided by 1.2, for a second attempt",
		o.RetryPeriod, o.RenewDeadline)
	refuse(o.DrainTimeout < 0, "DrainTimeout is %v, must not be negative", o.DrainTimeout)
	return errors.Join(errs...)
}

// retryPeriod returns a random pause between two renewals or attempts.
func (o Options) retryPeriod() time.Duration { return o.RetryPeriod - rand.N(o.RetryPeriod/5+1) }
