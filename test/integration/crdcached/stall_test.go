package crdcached_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// testSilentConnections opens more connections from one address than the server accepts. They send nothing,
// or the start of a message.
func (v *attackedServer) testSilentConnections(t *testing.T) {
	stranger := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for i := range 700 {
		c, err := stranger.DialContext(t.Context(), "tcp", strings.TrimPrefix(v.URL, "https://"))
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		if i%2 == 0 { // an incomplete TLS hello
			// the server may have closed the connection
			_, _ = c.Write([]byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01})
		}
	}
	v.expectCodes(t, v.guestConfig, v.path(v.open), nil, http.StatusOK)
}

// rawConnection is an HTTP/2 connection whose frames the test controls.
type rawConnection struct {
	conn   *tls.Conn
	framer *http2.Framer
	head   bytes.Buffer
	hpack  *hpack.Encoder
	stream uint32
	// ended counts the ended streams. The end of the connection ends all of its streams.
	ended atomic.Int64
}

// dial opens a connection. window is the flow-control window of each stream in bytes.
func (v *attackedServer) dial(t *testing.T, window uint32) *rawConnection {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(v.URL, "https://"), &tls.Config{InsecureSkipVerify: true,
		NextProtos: []string{"h2"}})
	must(t, err)
	r := &rawConnection{conn: conn, framer: http2.NewFramer(conn, conn)}
	r.hpack = hpack.NewEncoder(&r.head)
	read := make(chan struct{})
	go func() { defer close(read); r.countEndedStreams() }() // ended by the end of the connection
	t.Cleanup(func() { _ = conn.Close(); <-read })
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := r.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize,
		Val: window}); err != nil {
		t.Fatal(err)
	}
	return r
}

// send sends a GET on a new stream.
func (r *rawConnection) send(token, path string) error {
	r.head.Reset()
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "crdcached"},
		{":path", path}, {"authorization", "Bearer " + token}} {
		_ = r.hpack.WriteField(hpack.HeaderField{Name: field[0],
			Value: field[1]}) // cannot fail, because it writes to memory
	}
	r.stream += 2
	first := r.head.Next(maxFrame)
	err := r.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: r.stream - 1, BlockFragment: first,
		EndHeaders: r.head.Len() == 0, EndStream: true})
	for err == nil && r.head.Len() > 0 {
		part := r.head.Next(maxFrame)
		err = r.framer.WriteContinuation(r.stream-1, r.head.Len() == 0, part)
	}
	return err
}

// maxFrame limits the length of frames.
const maxFrame = 16 << 10

// testResets sends thousands of requests and cancels each one immediately.
func (v *attackedServer) testResets(t *testing.T) {
	for _, token := range []string{v.guestConfig.BearerToken, "none"} {
		r := v.dial(t, 1<<16)
		for range 5000 {
			if r.send(token, v.path(v.open)) != nil || r.framer.WriteRSTStream(r.stream-1,
				http2.ErrCodeCancel) != nil {
				break // the server has closed the connection
			}
		}
		_ = r.conn.Close()
		for isBusy := true; isBusy; { // until the last of the requests have ended
			answer, err := v.get(t, v.guestConfig, v.path(v.open), nil)
			isBusy = err == nil && answer.code == http.StatusTooManyRequests
		}
		v.expectCodes(t, v.guestConfig, v.path(v.open), nil, http.StatusOK)
	}
}

// watchesPerConnection is the number of watches on a connection. It is below the server's limit.
const watchesPerConnection = 50

// testStalledWatches opens many watches. Half of them read nothing and must be closed. The other half must
// receive all events.
func (v *attackedServer) testStalledWatches(t *testing.T) {
	version := v.currentVersion(t)
	path := v.path(v.open) + "?watch=true&resourceVersion=" + version
	var stalled []*rawConnection
	for range *attackWatches / 2 / watchesPerConnection {
		r := v.dial(t, 1)
		stalled = append(stalled, r)
		for range watchesPerConnection {
			must(t, r.send(v.guestConfig.BearerToken, path))
		}
	}
	const changes = 40
	var received atomic.Int64
	var readers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range *attackWatches / 2 / watchesPerConnection {
		config := rest.CopyConfig(v.guestConfig)
		config.Dial = (&net.Dialer{}).DialContext // for its own connection
		client, err := dynamic.NewForConfig(config)
		must(t, err)
		// The first request opens the connection that later requests share. Concurrent first requests would
		// open one connection each.
		if _, err := client.Resource(v.gvr).Namespace(v.open).List(ctx,
			metav1.ListOptions{ResourceVersion: "0"}); err != nil {
			t.Fatal(err)
		}
		for range watchesPerConnection {
			readers.Add(1)
			go func() { // ended after the last event or by cancel
				defer readers.Done()
				widgets := client.Resource(v.gvr).Namespace(v.open)
				received.Add(int64(watchChanges(ctx, widgets, version, changes)))
			}()
		}
	}
	v.changeWidget(t, changes)
	readers.Wait()
	want := int64(*attackWatches / 2 / watchesPerConnection * watchesPerConnection * changes)
	if received.Load() != want {
		t.Errorf("the watches with readers received %d changes, want %d", received.Load(), want)
	}
	harness.Eventually(t, func(context.Context) error {
		for _, r := range stalled {
			if r.ended.Load() < watchesPerConnection {
				return fmt.Errorf("a connection of stalled watches still has open watches")
			}
		}
		return nil
	})
}

// countEndedStreams counts the streams that end.
func (r *rawConnection) countEndedStreams() {
	for {
		got, err := r.framer.ReadFrame()
		if err != nil {
			r.ended.Store(math.MaxInt64)
			return
		}
		switch f := got.(type) {
		case *http2.RSTStreamFrame:
			r.ended.Add(1)
		case *http2.HeadersFrame:
			if f.StreamEnded() {
				r.ended.Add(1)
			}
		case *http2.DataFrame:
			if f.StreamEnded() {
				r.ended.Add(1)
			}
		}
	}
}

// currentVersion returns the current resource version of the widgets.
func (v *attackedServer) currentVersion(t *testing.T) string {
	t.Helper()
	list, err := adminClient(t).Resource(v.gvr).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return list.GetResourceVersion()
}

// changeWidget updates the widget in the open namespace repeatedly, by some kilobytes each time.
func (v *attackedServer) changeWidget(t *testing.T, times int) {
	t.Helper()
	objects := adminClient(t).Resource(v.gvr).Namespace(v.open)
	for range times {
		o, err := objects.Get(t.Context(), "a", metav1.GetOptions{})
		must(t, err)
		o.SetAnnotations(map[string]string{"large": strings.Repeat("x", 4<<10)})
		n, _ := strconv.Atoi(o.GetLabels()["value"])
		o.SetLabels(map[string]string{"value": strconv.Itoa(n + 1)})
		if _, err := objects.Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// watchChanges watches until it has received the given number of changes, and continues after the end of a
// watch. It returns the number of received changes.
func watchChanges(ctx context.Context, objects dynamic.ResourceInterface, version string,
	changes int) (received int) {
	for ctx.Err() == nil {
		w, err := objects.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			pause(ctx)
			continue
		}
		for e := range w.ResultChan() {
			o, ok := e.Object.(metav1.Object)
			if !ok && !isSlowClientEnd(e) {
				w.Stop()
				return received // the history has expired
			}
			if !ok {
				break
			}
			version = o.GetResourceVersion()
			if received++; received == changes {
				w.Stop()
				return received
			}
		}
		w.Stop()
	}
	return received
}

// isSlowClientEnd reports whether an event says that the server closed the watch because the client read too
// slowly. The client can continue at its last version.
func isSlowClientEnd(e watch.Event) bool {
	err := apierrors.FromObject(e.Object)
	return e.Type == watch.Error && !apierrors.IsGone(err) && !apierrors.IsResourceExpired(err)
}

// unaffectedReader follows the open namespace during the attacks.
type unaffectedReader struct {
	cancel   context.CancelFunc
	ended    chan struct{}
	from     string
	received []string
}

func startUnaffectedReader(v *attackedServer) *unaffectedReader {
	v.Helper()
	client, err := dynamic.NewForConfig(v.reader)
	if err != nil {
		v.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &unaffectedReader{cancel: cancel, ended: make(chan struct{}), from: v.currentVersion(v.T)}
	go func() { // ended by cancel or after the last change
		defer close(b.ended)
		at := b.from
		for ctx.Err() == nil {
			w, err := client.Resource(v.gvr).Watch(ctx, metav1.ListOptions{ResourceVersion: at})
			if err != nil {
				pause(ctx)
				continue
			}
			for e := range w.ResultChan() {
				o, ok := e.Object.(metav1.Object)
				if !ok && isSlowClientEnd(e) {
					break
				}
				if !ok {
					b.received = append(b.received, fmt.Sprint(e.Object))
					w.Stop()
					return
				}
				at = o.GetResourceVersion()
				b.received = append(b.received, fmt.Sprint(e.Type, " ", o.GetName(), " ", at))
				if o.GetName() == "last" {
					w.Stop()
					return
				}
			}
			w.Stop()
		}
	}()
	return b
}

// check compares the reader's events with the objects of the cluster.
func (b *unaffectedReader) check(v *attackedServer) {
	v.Helper()
	defer b.cancel()
	objects := adminClient(v.T).Resource(v.gvr)
	if _, err := objects.Namespace(v.open).Create(v.Context(), newObject(v.gvr, "last", "1"),
		metav1.CreateOptions{}); err != nil {
		v.Fatal(err)
	}
	select {
	case <-b.ended:
	case <-time.After(5 * time.Minute):
		v.Fatal("the unaffected reader has not received the last change")
	}
	w, err := objects.Watch(v.Context(), metav1.ListOptions{ResourceVersion: b.from})
	if err != nil {
		v.Fatal(err)
	}
	defer w.Stop()
	var want []string
	for e := range w.ResultChan() {
		o := e.Object.(metav1.Object)
		want = append(want, fmt.Sprint(e.Type, " ", o.GetName(), " ", o.GetResourceVersion()))
		if o.GetName() == "last" {
			break
		}
	}
	if strings.Join(want, ",") != strings.Join(b.received, ",") {
		v.Errorf("the unaffected reader received %d changes, the cluster has %d:\n%v\n%v", len(b.received),
			len(want), b.received, want)
	}
}
