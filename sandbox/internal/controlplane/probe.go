package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const probeTimeout = 2 * time.Second

// probes check the readiness of the components.
type probes struct {
	client       *http.Client
	token        string
	etcdURL      string
	apiServerURL string
}

func newProbes(etcdPort, apiServerPort int, token string) *probes {
	return &probes{
		client: &http.Client{
			Timeout: probeTimeout,
			Transport: &http.Transport{
				// Readiness on loopback does not depend on the certificate.
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
				// A kept connection may belong to a dead process.
				DisableKeepAlives: true,
			},
		},
		token:        token,
		etcdURL:      fmt.Sprintf("http://%s:%d", loopback, etcdPort),
		apiServerURL: fmt.Sprintf("https://%s:%d", loopback, apiServerPort),
	}
}

func (p *probes) etcdReady(ctx context.Context) error {
	return p.get(ctx, p.etcdURL+"/health", `"health":"true"`)
}

// apiServerReady also requires the default namespace, which a controller in the server creates shortly after
// the server reports ready.
func (p *probes) apiServerReady(ctx context.Context) error {
	if err := p.get(ctx, p.apiServerURL+"/readyz", "ok"); err != nil {
		return err
	}
	return p.get(ctx, p.apiServerURL+"/api/v1/namespaces/default", `"default"`)
}

func (p *probes) get(ctx context.Context, url, want string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
		return fmt.Errorf("%s: %s: %.300s", url, resp.Status, body)
	}
	return nil
}
