//! Stories: the program as a user has it, real processes, real services.

mod commands;
mod demo;
mod place;
mod story_cut_off;
mod story_nginx;
