package browser_test

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is the timeout of every wait.
const patience = 3 * time.Minute

// tab is a page in its own browser. Console errors and violations of the content security policy fail
// the test.
type tab struct {
	*testing.T
	ctx context.Context
	mu  sync.Mutex
	// origins are the visited addresses. The page must not load anything from other addresses.
	origins []string
	// errors are the console errors. permitted are parts of the errors that do not fail the test.
	errors, permitted []string
	requests          []string
}

// openTab starts a browser and opens an address.
func openTab(t *testing.T, address string, width, height int, flags ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	return openTabWithHeaders(t, address, nil, width, height, flags...)
}

// openTabWithHeaders is open with headers for all requests.
func openTabWithHeaders(t *testing.T, address string, headers network.Headers, width, height int,
	flags ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: make browser installs it", err)
	}
	options := append([]chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking",
			true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage",
			true), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(width, height),
	}, flags...)
	allocated, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancelTab := chromedp.NewContext(allocated)
	ctx, cancelTime := context.WithTimeout(ctx, 3*patience)
	// waits until the browser has ended
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancelTime(); cancelTab() })
	b := &tab{T: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.onEvent)
	b.runActions(cdplog.Enable(), network.Enable(), runtime.Enable(), network.SetExtraHTTPHeaders(headers))
	t.Cleanup(b.checkErrors)
	b.visit(address)
	return b
}

// visit opens an address, which may belong to another server.
func (b *tab) visit(address string) {
	b.Helper()
	at, err := url.Parse(address)
	if err != nil {
		b.Fatal(err)
	}
	b.mu.Lock()
	b.origins = append(b.origins, at.Scheme+"://"+at.Host+"/")
	b.mu.Unlock()
	b.runActions(chromedp.Navigate(address))
}

func (b *tab) onEvent(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError || e.Entry.Level == cdplog.LevelWarning {
			b.errors = append(b.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			b.errors = append(b.errors, fmt.Sprint(e.Args))
		}
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Error())
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// permitError permits console errors that contain a text.
func (b *tab) permitError(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.permitted = append(b.permitted, text)
}

func (b *tab) checkErrors() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, message := range b.errors {
		if !slices.ContainsFunc(b.permitted,
			func(text string) bool { return strings.Contains(message, text) }) {
			b.Errorf("unexpected console message: %s", message)
		}
	}
	for _, address := range b.requests {
		if !slices.ContainsFunc(b.origins,
			func(origin string) bool { return strings.HasPrefix(address, origin) }) {
			b.Errorf("the page requested %s", address)
		}
	}
}

func (b *tab) runActions(actions ...chromedp.Action) {
	b.Helper()
	for _, action := range actions {
		err := chromedp.Run(b.ctx, action)
		for err != nil && strings.Contains(err.Error(), replacedNode) && b.ctx.Err() == nil {
			err = chromedp.Run(b.ctx, action)
		}
		if err != nil {
			b.screenshot("failure")
			b.Fatal(err)
		}
	}
}

// replacedNode is Chromium's error for a node that the page replaced after chromedp had found it. The action
// has had no effect then.
const replacedNode = "Could not find node with given id"

// await waits until an expression is true. After a timeout it fails the test with the text of the page.
func (b *tab) await(expression string) {
	b.Helper()
	err := chromedp.Run(b.ctx, chromedp.Poll("Boolean("+expression+")", nil,
		chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience)))
	if err != nil {
		b.screenshot("failure")
		b.Fatalf("condition not met: %s: %v\n%s", expression, err, b.text("body"))
	}
}

// awaitText waits until an element contains a text.
func (b *tab) awaitText(selector, text string) {
	b.Helper()
	b.await(
		fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.checkVisibility() && e.innerText.includes(%q))", selector, text))
}

func (b *tab) text(selector string) string {
	var text string
	if err := chromedp.Run(b.ctx, chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''",
		selector), &text)); err != nil {
		return err.Error()
	}
	return text
}

func evaluate[T any](b *tab, expression string) T {
	b.Helper()
	var v T
	b.runActions(chromedp.Evaluate(expression, &v))
	return v
}

// press presses keys one after the other: characters or constants of package kb. It types no text, so it can
// send shortcuts.
func (b *tab) press(keys ...string) {
	b.Helper()
	for _, key := range keys {
		events := kb.Encode([]rune(key)[0])
		down, up := events[0], events[len(events)-1]
		down.Type, down.Text = input.KeyDown, events[len(events)/2].Text
		b.runActions(down, up)
	}
}

// goTo changes the location within the page.
func (b *tab) goTo(hash string) {
	b.Helper()
	b.runActions(chromedp.Evaluate(fmt.Sprintf("location.hash = %q; true", hash), nil))
}

// screenshot takes a screenshot. It stores the image in the folder of CRDCACHE_PICTURES, or in the test's
// folder of artifacts.
func (b *tab) screenshot(name string) []byte {
	var image []byte
	if err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot(&image)); err != nil {
		b.Log(err)
		return nil
	}
	folder := cmp.Or(os.Getenv("CRDCACHE_PICTURES"), b.ArtifactDir())
	file := filepath.Join(folder, strings.ReplaceAll(b.Name(), "/", "-")+"-"+name+".png")
	if err := os.WriteFile(file, image, 0o644); err != nil {
		b.Log(err)
	}
	return image
}
