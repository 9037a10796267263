package browser_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestTabsShareAStream opens more tabs than a browser's limit of HTTP/1.1 connections. All visible tabs get
// changes through one stream, whichever tab closes. Hidden tabs have no stream.
func TestTabsShareAStream(t *testing.T) {
	cluster := inMemory(t, 0)
	s := serve(t, cluster.Config(), platform(t))
	var streams atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/stream") {
			streams.Add(1)
			defer streams.Add(-1)
		}
		s.handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(s.handler.Close)
	first := open(t, server.URL+s.handler.Login(), 1000, 700)
	first.has(".connection", "Live")
	object := "#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger"
	tabs := []*tab{first}
	var ends []func()
	for i := range 7 {
		ctx, cancel := chromedp.NewContext(first.ctx)
		ends = append(ends, cancel)
		b := &tab{T: t, ctx: ctx, origins: []string{server.URL + "/"}}
		place := []string{"#/changes", object, "#/", workloadsPlace}[i%4]
		b.run(chromedp.Navigate(server.URL + "/" + place))
		b.has(".connection", "Live")
		tabs = append(tabs, b)
	}
	number := 0
	// A headless browser shows one tab at a time. A second window would always be visible.
	const visibility = `Object.defineProperty(document, "hidden", { configurable: true, get: () => %v }); document.dispatchEvent(new Event("visibilitychange")); true`
	show := func(b *tab, shown bool) {
		b.run(chromedp.Evaluate(fmt.Sprintf(visibility, !shown), nil))
	}
	for _, b := range tabs {
		show(b, true)
	}
	change := func(of ...*tab) {
		t.Helper()
		for _, b := range of {
			const told = `[...document.querySelectorAll(".changes li")].filter((e) => e.innerText.includes(".spec.replicas")).length`
			shown := chromedp.Poll(fmt.Sprintf("%s > %d", told, value[int](b, told)), nil,
				chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(time.Second))
			// The first change can precede the connection of another tab.
			for err := error(chromedp.ErrPollingTimeout); err != nil; err = chromedp.Run(b.ctx, shown) {
				if number++; number > 100 || !errors.Is(err, chromedp.ErrPollingTimeout) {
					b.picture("failure")
					t.Fatalf("timed out waiting for a change: %v: %s", err, b.text("body"))
				}
				patch(t, cluster, "ledger", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1000+number))
			}
		}
	}
	awaitStreams := func(want int32) {
		t.Helper()
		harness.Eventually(t, func(context.Context) error {
			if got := streams.Load(); got != want {
				return fmt.Errorf("%d streams, want %d", got, want)
			}
			return nil
		})
	}
	change(tabs[2], tabs[6])
	for _, b := range tabs {
		b.has(".connection", "Live")
	}
	awaitStreams(1)

	// Hide the first tab, which has the connection, and close two others.
	show(first, false)
	ends[0]()
	ends[3]()
	change(tabs[2], tabs[6])
	awaitStreams(1)
	for _, b := range []*tab{tabs[2], tabs[3], tabs[5], tabs[6], tabs[7]} {
		b.has(".connection", "Live")
		show(b, false)
	}
	awaitStreams(0)
	show(tabs[2], true)
	tabs[2].has(".changes", "are missing, because this page was not connected")
	change(tabs[2])
}
