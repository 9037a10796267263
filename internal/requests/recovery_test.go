package requests

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// connectThrough connects both clients to the server through a network, over HTTP/1.1 or HTTP/2, with
// client-go's transport.
func (r *clientComparison) connectThrough(n *network, http2 bool) {
	front := &httptest.Server{Listener: n, EnableHTTP2: http2, Config: &http.Server{
		Handler: r.server.Server.Config.Handler, ErrorLog: log.New(io.Discard, "", 0),
	}}
	transport := &http.Transport{DialContext: n.dial}
	if http2 {
		front.StartTLS()
		authority := x509.NewCertPool()
		authority.AddCert(front.Certificate())
		transport.TLSClientConfig = &tls.Config{RootCAs: authority}
	} else {
		front.Start()
	}
	r.config = &rest.Config{Host: front.URL, QPS: -1}
	r.http = &http.Client{Transport: utilnet.SetTransportDefaults(transport)}
	r.Cleanup(func() {
		transport.CloseIdleConnections()
		front.CloseClientConnections()
		front.Close()
	})
}

// testOutage is an outage of the network, or of the API server. The server closes all connections, and then
// answers requests with fault.
type testOutage struct {
	network networkFault
	fault   apitest.Fault
}

func (o testOutage) begin(r *clientComparison, n *network) {
	if o.network != works {
		n.setFault(o.network)
		return
	}
	r.addFault(o.fault)
	n.setFault(closes)
	n.heal()
}

func (o testOutage) end(r *clientComparison, n *network) {
	if o.network != works {
		n.heal()
		return
	}
	r.server.Repair()
}

// TestRecoveryIsNoSlowerThanClientGo measures, for all kinds and lengths of outages, the time until both
// clients receive an object that is created after the outage. It runs on a virtual clock.
func TestRecoveryIsNoSlowerThanClientGo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	type experiment struct {
		testOutage
		http2 bool
		count int
		// tolerance is the random difference between the medians of count outages. Pauses are random, and
		// long after a status.
		tolerance time.Duration
	}
	experiments := map[string]experiment{"requests get no answer": {count: 20, tolerance: InitialEventsTimeout}}
	// client-go also pauses for a second, and can be faster if few outages end in a pause.
	for how, tolerance := range map[networkFault]time.Duration{
		refuses: 500 * time.Millisecond, resets: 500 * time.Millisecond, closes: 500 * time.Millisecond,
		loses: time.Second, freezes: time.Second,
	} {
		for protocol, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			experiments[fmt.Sprint(how, ", ", protocol)] = experiment{testOutage{network: how},
				http2, 18, tolerance}
		}
	}
	for _, status := range []int{429, 500} {
		plain := testOutage{fault: apitest.Fault{Status: status}}
		experiments[fmt.Sprint(status)] = experiment{plain, false, 60, 6 * time.Second}
	}
	for _, status := range []int{429, 503} {
		retryAfter := testOutage{fault: apitest.Fault{Status: status, RetryAfter: "1"}}
		experiments[fmt.Sprint(status, ", Retry-After")] = experiment{retryAfter, false, 18,
			500 * time.Millisecond}
	}
	for name, e := range experiments {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newClientComparison(t)
				compareRecovery(r, e.testOutage, e.http2, e.count, e.tolerance)
			})
		})
	}
}

func compareRecovery(r *clientComparison, outage testOutage, http2 bool, count int, tolerance time.Duration) {
	n := newNetwork()
	r.connectThrough(n, http2)
	r.start(false)
	r.awaitSync(gadgets)
	r.awaitSync(clientGoGVR)
	outageLengths := rand.New(rand.NewPCG(1, 2))
	var crdcacheTimes, clientGoTimes []time.Duration
	for k := range count {
		for tick := range 3 { // as often as an API server sends bookmarks
			time.Sleep(time.Minute)
			r.create(fmt.Sprintf("tick-%d-%d", k, tick))
		}
		time.Sleep(time.Duration(outageLengths.IntN(60000)) * time.Millisecond)
		r.awaitSteady()
		outage.begin(r, n)
		longest := []int{10, 60, 300}[k%3]
		time.Sleep(time.Second + time.Duration(outageLengths.IntN(longest*1000))*time.Millisecond)
		outage.end(r, n)
		name := fmt.Sprint("b", k)
		r.create(name)
		us, them := r.awaitBoth("default/" + name)
		crdcacheTimes, clientGoTimes = append(crdcacheTimes, us), append(clientGoTimes, them)
	}
	slices.Sort(crdcacheTimes)
	slices.Sort(clientGoTimes)
	for which, at := range map[string]int{"median": count / 2, "worst": count - 1} {
		r.Logf("%s: %v, client-go %v", which, crdcacheTimes[at], clientGoTimes[at])
		if crdcacheTimes[at] > clientGoTimes[at]+tolerance {
			r.Errorf("the %s recovery took %v, want at most %v more than client-go's %v", which, crdcacheTimes[at],
				tolerance, clientGoTimes[at])
		}
	}
	if crdcacheTimes[count-1] >= maxRecovery {
		r.Errorf("the slowest recovery took %v, want less than %v", crdcacheTimes[count-1], maxRecovery)
	}
	us, them := r.countLists(gadgets), r.countLists(clientGoGVR)
	watches, theirWatches := r.count(gadgets, "watch"), r.count(clientGoGVR, "watch")
	r.Logf("%d lists and %d watches, client-go %d and %d", us, watches, them, theirWatches)
	if us > them+them/10+count/10 {
		r.Errorf("%d lists, want at most %d; client-go sent %d", us, them+them/10+count/10, them)
	}
}

// TestSuspendedServerIsNotPolled suspends a server until any moment of a watch without a response. Its answer
// to a list afterwards does not show that a proxy holds back watches.
func TestSuspendedServerIsNotPolled(t *testing.T) {
	for after := time.Duration(0); after < time.Minute; after += 2 * time.Second {
		synctest.Test(t, func(t *testing.T) {
			r, n := newClientComparison(t), newNetwork()
			r.connectThrough(n, false)
			r.startOurs(false)
			r.awaitSync(gadgets)
			r.awaitSteady()
			n.setFault(freezes)
			time.Sleep(silenceHTTP1 + after)
			n.heal()
			before := r.countLists(gadgets)
			time.Sleep(minWatchTimeout)
			if lists := r.countLists(gadgets) - before; lists > 1 {
				t.Errorf("%d lists after a suspension of %v, want at most one", lists, silenceHTTP1+after)
			}
		})
	}
}

// awaitSteady waits until no watch is younger than ShortWatch. If an outage closed a younger watch, both
// would list.
func (r *clientComparison) awaitSteady() {
	watches := func() int { return r.count(gadgets, "watch") + r.count(clientGoGVR, "watch") }
	for before := -1; before != watches(); {
		before = watches()
		time.Sleep(2 * ShortWatch)
	}
}

// countLists returns the number of list requests of a type for all objects.
func (r *clientComparison) countLists(gvr schema.GroupVersionResource) (n int) {
	for _, request := range r.server.Requests() {
		verb, uri, _ := strings.Cut(request, " ")
		if strings.HasPrefix(uri, pathOf(gvr)+"?") && verb != "watch" && !strings.Contains(uri, "limit=1") {
			n++
		}
	}
	return n
}

const maxRecovery = 10 * time.Minute

// awaitBoth returns the times until the two caches have an object.
func (r *clientComparison) awaitBoth(key string) (ours, others time.Duration) {
	begun := time.Now()
	recoveryTimes := map[schema.GroupVersionResource]time.Duration{}
	for time.Since(begun) < maxRecovery && len(recoveryTimes) < 2 {
		for gvr, store := range r.stores {
			if _, found := recoveryTimes[gvr]; !found && slices.Contains(store.ListKeys(), key) {
				recoveryTimes[gvr] = time.Since(begun)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	for gvr := range r.stores {
		if _, found := recoveryTimes[gvr]; !found {
			recoveryTimes[gvr] = maxRecovery
		}
	}
	return recoveryTimes[gadgets], recoveryTimes[clientGoGVR]
}
