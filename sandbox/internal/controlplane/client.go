package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// ErrNotRunning means that no sandbox runs in the directory.
var ErrNotRunning = errors.New("no sandbox is running")

// Client controls the supervisor of a running sandbox from another process.
type Client struct {
	layout Layout
	state  state
}

// Dial connects to the sandbox in dir. It returns ErrNotRunning if there is none, or if it is still starting.
func Dial(dir string) (*Client, error) {
	layout, err := NewLayout(dir)
	if err != nil {
		return nil, err
	}
	isHeld, err := lockHeld(layout.lock())
	if err != nil {
		return nil, err
	}
	if !isHeld {
		return nil, fmt.Errorf("%s: %w", layout.Dir, ErrNotRunning)
	}
	data, err := os.ReadFile(layout.state())
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w yet: it is starting or stopping", layout.Dir, ErrNotRunning)
	}
	if err != nil {
		return nil, err
	}
	client := &Client{layout: layout}
	if err := json.Unmarshal(data, &client.state); err != nil {
		return nil, fmt.Errorf("%s: %w", layout.state(), err)
	}
	return client, nil
}

// Layout returns the paths of the sandbox's files.
func (c *Client) Layout() Layout { return c.layout }

// EtcdURL returns etcd's client endpoint, which needs no credentials.
func (c *Client) EtcdURL() string { return c.state.EtcdURL }

// Status requests the status of the sandbox.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	body, err := c.do(ctx, http.MethodGet, "/status")
	if err != nil {
		return status, err
	}
	return status, json.Unmarshal(body, &status)
}

// Restart is ControlPlane.Restart.
func (c *Client) Restart(ctx context.Context, component Component) error {
	_, err := c.do(ctx, http.MethodPost, "/restart/"+string(component))
	return err
}

// Kill is ControlPlane.Kill.
func (c *Client) Kill(ctx context.Context, component Component) error {
	_, err := c.do(ctx, http.MethodPost, "/kill/"+string(component))
	return err
}

func (c *Client) do(ctx context.Context, method, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.state.ControlURL+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.state.ControlToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, errors.New(strings.TrimSpace(string(body)))
	}
	return body, nil
}

// downTimeout is the time after which Down kills a supervisor.
const downTimeout = 15 * time.Second

// Down stops the sandbox in dir, if there is one, and returns when it has ended. It kills a supervisor that
// does not answer, and the components.
func Down(ctx context.Context, dir string) error {
	layout, err := NewLayout(dir)
	if err != nil {
		return err
	}
	isHeld, err := lockHeld(layout.lock())
	if err != nil || !isHeld {
		return err
	}
	pid := lockHolder(layout.lock())
	if client, err := Dial(dir); err == nil {
		// An error means that the supervisor is already stopping or hangs. The wait for the lock shows which.
		askCtx, cancel := context.WithTimeout(ctx, downTimeout)
		_, _ = client.do(askCtx, http.MethodPost, "/down")
		cancel()
	} else if pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM) // still starting
	}
	waitCtx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	if err := awaitUnlocked(waitCtx, layout); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	lastCtx, cancelLast := context.WithTimeout(ctx, downTimeout)
	defer cancelLast()
	if err := awaitUnlocked(lastCtx, layout); err != nil {
		return fmt.Errorf("%s: supervisor %d does not go away: %w", layout.Dir, pid, err)
	}
	return nil
}

func awaitUnlocked(ctx context.Context, layout Layout) error {
	ticker := time.NewTicker(30 * time.Millisecond)
	defer ticker.Stop()
	for {
		isHeld, err := lockHeld(layout.lock())
		if err != nil || !isHeld {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
