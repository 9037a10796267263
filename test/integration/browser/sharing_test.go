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

	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestTabsShareAStream opens more tabs than a browser's limit of HTTP/1.1 connections. All visible tabs get
// changes through one stream, whichever tab closes. Hidden tabs have no stream.
func TestTabsShareAStream(t *testing.T) {
	cluster := newCluster(t, 0)
	s := servePage(t, cluster.Config(), platformConfig(t))
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
	first := openTab(t, server.URL+s.handler.Login(), 1000, 700)
	first.awaitText(".connection", "Live")
	object := "#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger"
	tabs := []*tab{first}
	var closeTab []func()
	for i := range 7 {
		ctx, cancel := chromedp.NewContext(first.ctx)
		closeTab = append(closeTab, cancel)
		b := &tab{T: t, ctx: ctx, origins: []string{server.URL + "/"}}
		place := []string{"#/changes", object, "#/", workloadsPage}[i%4]
		b.runActions(chromedp.Navigate(server.URL + "/" + place))
		b.awaitText(".connection", "Live")
		tabs = append(tabs, b)
	}
	number := 0
	// A headless browser shows one tab at a time. A second window would always be visible.
	const visibility = `Object.defineProperty(document, "hidden", { configurable: true, get: () => %v }); document.dispatchEvent(new Event("visibilitychange")); true`
	setVisible := func(b *tab, visible bool) {
		b.runActions(chromedp.Evaluate(fmt.Sprintf(visibility, !visible), nil))
	}
	for _, b := range tabs {
		setVisible(b, true)
	}
	awaitChange := func(of ...*tab) {
		t.Helper()
		for _, b := range of {
			const changeCount = `[...document.querySelectorAll(".changes li")].filter((e) => e.innerText.includes(".spec.replicas")).length`
			shown := chromedp.Poll(fmt.Sprintf("%s > %d", changeCount, evaluate[int](b, changeCount)), nil,
				chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(time.Second))
			// The first change can precede the connection of another tab.
			for err := error(chromedp.ErrPollingTimeout); err != nil; err = chromedp.Run(b.ctx, shown) {
				if number++; number > 100 || !errors.Is(err, chromedp.ErrPollingTimeout) {
					b.screenshot("failure")
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
	awaitChange(tabs[2], tabs[6])
	for _, b := range tabs {
		b.awaitText(".connection", "Live")
	}
	awaitStreams(1)

	// Hide the first tab, which has the connection, and close two others.
	setVisible(first, false)
	closeTab[0]()
	closeTab[3]()
	awaitChange(tabs[2], tabs[6])
	awaitStreams(1)
	for _, b := range []*tab{tabs[2], tabs[3], tabs[5], tabs[6], tabs[7]} {
		b.awaitText(".connection", "Live")
		setVisible(b, false)
	}
	awaitStreams(0)
	setVisible(tabs[2], true)
	tabs[2].awaitText(".changes", "are missing, because this page was not connected")
	awaitChange(tabs[2])
}
