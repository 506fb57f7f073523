package agent

import (
	"context"
	"fmt"

	"muntin/agent/resource"
	"muntin/agent/tui"
	"muntin/cmd/internal/cli/resources"
	settings "muntin/cmd/internal/cli/settings"
)

// placeSettings are the settings as the agent's screen shows and changes them.
type placeSettings struct{ op *opener }

// List implements tui.Settings.
func (p placeSettings) List(ctx context.Context) ([]tui.Setting, error) {
	place, err := p.op.look(ctx)
	if err != nil {
		return nil, err
	}
	var all []tui.Setting
	for _, r := range settings.Rows(place) {
		s := tui.Setting{Name: r.Name, Value: r.Text(), Doc: r.Doc}
		for _, at := range r.From {
			s.From = fmt.Sprintf("%s:%d", at.Path, at.Line)
		}
		all = append(all, s)
	}
	return all, nil
}

// Set implements tui.Settings.
func (p placeSettings) Set(ctx context.Context, name, value string) error {
	return (&settings.Options{App: p.op.App}).Set(ctx, name, value)
}

// Unset implements tui.Settings.
func (p placeSettings) Unset(ctx context.Context, name string) error {
	return (&settings.Options{App: p.op.App}).Unset(ctx, name)
}

// look loads what holds in the working folder now, without taking it.
func (o *opener) look(ctx context.Context) (*resources.Place, error) {
	g := o.given
	return resources.Open(ctx, resources.Options{App: g.App, Dir: o.dir, Trust: g.Trust, NoTrust: g.NoTrust, Skills: g.Skills, Prompts: g.Prompts})
}

// placeTrust is the decision on the working folder's project.
type placeTrust struct{ op *opener }

// State implements tui.Trust.
func (p placeTrust) State(ctx context.Context) (tui.TrustState, error) {
	a, dir := p.op.App, p.op.dir
	folder, err := resources.ProjectOf(a, dir)
	if err != nil {
		return tui.TrustState{}, err
	}
	t, err := resources.Decide(ctx, resources.Options{App: a, Dir: dir, Trust: p.op.Trust, NoTrust: p.op.NoTrust})
	s := tui.TrustState{Folder: folder, Trusted: t.Trusted, Why: t.Why}
	for _, item := range resource.Brought(dir, resource.Own(a.Getenv("HOME"), a.Layout.Config)...) {
		s.Brings = append(s.Brings, item.Path)
	}
	return s, err
}

// Decide implements tui.Trust.
func (p placeTrust) Decide(ctx context.Context, trusted bool) error {
	folder, err := resources.ProjectOf(p.op.App, p.op.dir)
	if err == nil {
		_, err = resources.Store(p.op.App).Decide(ctx, folder, trusted)
	}
	return err
}

// Forget implements tui.Trust.
func (p placeTrust) Forget(ctx context.Context) error {
	folder, err := resources.ProjectOf(p.op.App, p.op.dir)
	if err == nil {
		_, err = resources.Store(p.op.App).Forget(ctx, folder)
	}
	return err
}
