//! Closed sets of values on the wire: an enum in Rust, a `snake_case` string in JSON, and the same list in
//! every error.

/// A value that is not in its list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not one of {}", known.join(", "))]
pub struct UnknownWord {
    /// The value as it was written.
    pub text: String,
    /// The values that are allowed.
    pub known: &'static [&'static str],
}

/// Declares a closed set of values. With `= Domain`, also the conversions from and to the domain's own enum.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident = $domain:ty {
        $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+
    }) => {
        $crate::word::words! { $(#[$doc])* $name { $($(#[$word_doc])* $variant = $word,)+ } }

        impl From<$domain> for $name {
            fn from(from: $domain) -> Self {
                match from {
                    $(<$domain>::$variant => Self::$variant,)+
                }
            }
        }

        impl From<$name> for $domain {
            fn from(from: $name) -> Self {
                match from {
                    $($name::$variant => <$domain>::$variant,)+
                }
            }
        }
    };
    ($(#[$doc:meta])* $name:ident {
        $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
            utoipa::ToSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$word_doc])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The values as they are written.
            pub const WORDS: &'static [&'static str] = &[$($word,)+];

            /// The value as it is written.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, word: &str) -> bool {
                self.as_str() == word
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, word: &&str) -> bool {
                self.as_str() == *word
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::word::UnknownWord;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let known = Self::ALL.iter().find(|word| word.as_str() == text);
                known.copied().ok_or_else(|| $crate::word::UnknownWord {
                    text: text.to_owned(),
                    known: Self::WORDS,
                })
            }
        }
    };
}

pub(crate) use words;
